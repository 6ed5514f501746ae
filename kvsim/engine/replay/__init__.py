"""Replay of a recorded engine run: the same workload, step by step and without a clock, in the recording's own form.

A case (JSON) names the engine's settings and its requests by arrival *step*; what the real engine did is one JSON line
a step and a summary line. Here the scheduler and the allocator are driven exactly as a replica drives them, so that
the seam between them is judged by an engine that nobody here wrote. Each engine has a room of its own.
"""

from collections.abc import Iterator

from kvsim.engine.replay.case import Record, parts_of
from kvsim.engine.replay.compare import IGNORED, compare_records
from kvsim.engine.replay.sglang import is_sglang, replay_sglang
from kvsim.engine.replay.vllm import replay_vllm

__all__ = ["IGNORED", "Record", "compare_records", "replay"]


def replay(case: Record) -> Iterator[Record]:
    """Yield a record for every step of `case`, then the summary.

    Raises InputError, which names the setting or the request, when the case lacks something, holds a value that cannot
    be, or asks for a rule that is not modelled yet.
    """
    return replay_sglang(case) if is_sglang(case) else replay_vllm(*parts_of(case))
