"""Replay of vLLM's cases: its settings and requests, and the two engines of kvsim that follow its rules."""

from collections.abc import Iterator
from typing import Any

from kvsim.engine.replay.case import Record
from kvsim.engine.replay.vllm.by_counts import CountingEngine, can_count
from kvsim.engine.replay.vllm.by_request import RequestEngine
from kvsim.engine.replay.vllm.drive import records
from kvsim.engine.replay.vllm.settings import settings_of
from kvsim.engine.replay.vllm.truth import truths_of
from kvsim.errors import InputError


def replay_vllm(config: Record, requests: list[Any]) -> Iterator[Record]:
    """Yield a record for every step, then the summary; InputError as for `replay`.

    Where blocks need no identity the allocator that only counts them is judged, otherwise the one that shares them.
    """
    settings = settings_of(config)
    truths = truths_of(requests, settings["max_model_len"])
    try:
        engine = CountingEngine(settings) if can_count(settings) else RequestEngine(settings)
    except ValueError as error:
        raise InputError(f"config: {error}") from error
    return records(engine, truths, settings["max_steps"])
