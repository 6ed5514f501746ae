"""Small runs of the naive engine, easy to follow by hand: every step takes 10 picoseconds."""

from dataclasses import replace
from typing import Any

from kvsim.request import Request
from tests.naive import CLASSES, Engine, Outcome, simulate

DEFAULTS: dict[str, Any] = {
    "allocator": "paged",
    "pool_slots": 100,
    "block_size": 1,
    "chunk": 1,
    "watermark": 0.0,
    "reserve_full_isl": True,
    "reference_need_slots": 1,
    "max_num_seqs": 8,
    "max_num_batched_tokens": 100,
    "max_model_len": 100,
    "long_prefill_token_threshold": 0,
    "chunked_prefill": True,
    "horizon_ps": None,
}
CONTIGUOUS: dict[str, Any] = {"allocator": "contiguous", "chunk": 4, "pool_slots": 12}


def ask(prompt: int, output: int, at: int = 0, **more: Any) -> Request:
    return Request(id=-1, arrival_ps=at, prompt_tokens=prompt, output_tokens=output, **more)


def run(*requests: Request, **changes: Any) -> tuple[Outcome, list[Any], list[Any]]:
    """Every step takes 10 ps. Returns the outcome, what each step was timed by, and (time, ids scheduled)."""
    timed: list[Any] = []
    planned: list[Any] = []
    numbered = [replace(request, id=number) for number, request in enumerate(requests)]

    def ten_ps(*batch: Any) -> int:
        timed.append(batch)
        return 10

    def watch(engine: Engine) -> None:
        planned.append((engine.now, [life.id for life, _ in engine.scheduled]))

    return simulate(DEFAULTS | changes | {"requests": numbered}, ten_ps, watch), timed, planned


def slots(**levels: int) -> dict[str, int]:
    return dict.fromkeys(CLASSES, 0) | levels
