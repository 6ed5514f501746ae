"""Replay of vLLM's cases: its settings and requests, and the two engines of kvsim that follow its rules."""

from collections.abc import Callable, Iterator
from typing import Any

from kvsim.engine.replay.case import Record
from kvsim.engine.replay.vllm.by_batch import BatchEngine, can_batch
from kvsim.engine.replay.vllm.by_request import RequestEngine
from kvsim.engine.replay.vllm.drive import records
from kvsim.engine.replay.vllm.engine import Engine
from kvsim.engine.replay.vllm.settings import settings_of
from kvsim.engine.replay.vllm.truth import truths_of
from kvsim.errors import InputError


def replay_vllm(config: Record, requests: list[Any], *, engine: int = 0) -> Iterator[Record]:
    """Yield a record for every step, then the summary; InputError as for `replay`.

    `engine` picks one of those that can follow these settings; all of them must say the same.
    """
    settings = settings_of(config)
    truths = truths_of(requests, settings["max_model_len"])
    try:
        made = engines_for(settings)[engine](settings)
    except ValueError as error:
        raise InputError(f"config: {error}") from error
    return records(made, truths, settings["max_steps"])


def engines_for(settings: Record) -> list[Callable[[Record], Engine]]:
    """Who can follow these settings: the one that counts comes first where blocks need no contents."""
    if not can_batch(settings):
        return [RequestEngine]
    return [RequestEngine, BatchEngine] if settings["enable_prefix_caching"] else [BatchEngine, RequestEngine]
