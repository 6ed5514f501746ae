"""Replay of SGLang's recorded runs: its scheduler over the radix tree step by step, or operations on a tree alone."""

from collections.abc import Iterator
from typing import Any

from kvsim.engine.replay.sglang.case import is_sglang, settings_of
from kvsim.engine.replay.sglang.ops import Operations
from kvsim.engine.replay.sglang.stream import Stream

__all__ = ["is_sglang", "replay_sglang"]


def replay_sglang(case: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a record for every step, or operation, of `case`, then the summary.

    Raises InputError, which names the setting, the request or the operation that is missing, wrong or not modelled.
    """
    settings = settings_of(case)
    if settings["mode"] == "ops":
        return Operations(settings).records(case["ops"])
    return Stream(settings, case["requests"]).records()
