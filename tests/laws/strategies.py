"""Random small scenarios as plain dicts, made to hurt: tiny pools, ties, cancellations, coinciding moments.

A case holds, in slots, tokens and integer picoseconds:

- `requests`: `kvsim.request.Request`s sorted by arrival, ids 0..n-1;
- the pool: `pool_slots` (for `paged` a multiple of `block_size`), `allocator` (`paged`, `contiguous`,
  `reserve`), `block_size`, `chunk` (a contiguous region is a multiple of it), `watermark` (share of blocks),
  `reserve_full_isl`, `reference_need_slots` (the need that tells small holes when nothing waits);
- the engine: `max_num_seqs`, `max_num_batched_tokens` (at least `max_num_seqs`; with `chunked_prefill` off
  at least `max_model_len`), `max_model_len`, `long_prefill_token_threshold` (0: off), `chunked_prefill`;
- `horizon_ps` (None: to the end) and `step_time`, the coefficients of `linear_step_ps`.

Keys that an allocator has no use for are there all the same.

`policies` adds, on top of a case: `scheduler` (`continuous`, `prefill-first`, `static`), `kernel` (`ragged`, `padded`),
`preemption` (with `host_slots` for `swap`), `victim`, `workspace_tokens` (None: as many as the budget), the allocators
`virtual` (with `mapped_ahead`) and `no-cache`, `options` of the region allocators, and requests of up to four samples.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from kvsim.request import Request
from kvsim.scheduling.batching.queueing import PREEMPTIONS
from kvsim.scheduling.batching.victims import VICTIMS

ALLOCATORS = ("paged", "contiguous", "reserve")
KINDS = (*ALLOCATORS, "virtual", "no-cache")
SCHEDULERS = ("continuous", "prefill-first", "static")
REGIONS: dict[str, tuple[dict[str, Any], ...]] = {
    "contiguous": (
        {},
        {"fit": "buddy", "growth": "double"},
        {"growth": "exact", "rounding_slots": 3},
        {"growth": "cat", "tensors": 4},
        {"fit": "best", "compaction": "on-failure"},
    ),
    "reserve": ({}, {"size": "pow2", "fit": "buddy"}, {"size": "oracle"}),
}
"""Options of the region allocators, a few of each kind."""


def linear_step_ps(step_time: dict[str, int]) -> Callable[[int, int, list[tuple[int, int]], int], int]:
    """The step time in integer picoseconds, linear in the batch: what both engines of a comparison must use.

    base + token x computed tokens + context x (tokens that decodes read + tokens written before each chunk)
    + copied x slots that growing regions copied.
    """

    def step_ps(decodes: int, context: int, chunks: list[tuple[int, int]], copied_slots: int) -> int:
        computed = decodes + sum(tokens for tokens, _ in chunks)
        read = context + sum(already for _, already in chunks)
        return (
            step_time["base_ps"]
            + step_time["token_ps"] * computed
            + step_time["context_ps"] * read
            + step_time["copied_ps"] * copied_slots
        )

    return step_ps


def one_in(times: int, strategy: st.SearchStrategy[int]) -> st.SearchStrategy[int | None]:
    """A value once in `times`, else None."""
    return st.integers(1, times).flatmap(lambda number: strategy if number == times else st.none())


@st.composite
def step_times(draw: st.DrawFn, grid: int) -> dict[str, int]:
    """Coefficients that are all multiples of `grid` picoseconds; often only the base: equal steps."""
    small = st.sampled_from([0, 0, grid, 3 * grid])
    return {
        "base_ps": grid * draw(st.integers(1, 4)),
        "token_ps": draw(small),
        "context_ps": draw(small),
        "copied_ps": draw(small),
    }


@st.composite
def request_lists(draw: st.DrawFn, grid: int, aligned: bool, max_size: int = 14) -> list[Request]:
    """1-14 requests whose arrivals often coincide; some are impatient, some are cut short by their client.

    `aligned` times are multiples of `grid` picoseconds and meet the ends of steps, the others fall between.
    """
    count = draw(st.integers(1, max_size))
    span = draw(st.sampled_from([0, 2, 8, 40]))  # gaps in grid units: a burst, a crowd, a stream, a trickle
    times = st.integers(0, span).map(grid.__mul__) if aligned else st.integers(0, span * grid)
    waits = st.integers(0, 80).map(grid.__mul__) if aligned else st.integers(0, 80 * grid)
    gaps = draw(st.lists(times, min_size=count, max_size=count))
    prompts = st.one_of(st.integers(1, 8), st.integers(1, 60))
    outputs = st.one_of(st.integers(1, 4), st.integers(1, 40))
    return [
        Request(
            id=number,
            arrival_ps=sum(gaps[: number + 1]),
            prompt_tokens=draw(prompts),
            output_tokens=draw(outputs),
            max_tokens=draw(one_in(3, st.integers(1, 40))),
            patience_ps=draw(one_in(5, waits)),
        )
        for number in range(count)
    ]


@st.composite
def pool_sizes(draw: st.DrawFn, requests: list[Request], whole: int, unit: int) -> int:
    """From four times all demand down to less than one prompt; `whole` is the most a request asks for."""
    prompt = max(request.prompt_tokens for request in requests)
    total = sum(request.prompt_tokens + request.output_tokens for request in requests)
    tight = st.integers(whole, 2 * whole)  # one or two large ones at a time: preemption
    snug = st.integers(whole, 5 * whole)  # a few: fragmentation
    roomy = st.integers(max(total, whole), 4 * max(total, whole))  # no pressure
    outgrown = st.integers(whole // 2 + 1, whole)  # some cannot end, some do not even fit
    small = st.integers(1, prompt)  # some prompt never fits
    slots: int = draw(draw(st.sampled_from([tight, tight, snug, snug, roomy, outgrown, small])))
    return -(-slots // unit) * unit


@st.composite
def scenarios(draw: st.DrawFn, allocators: tuple[str, ...] = ALLOCATORS) -> dict[str, Any]:
    """One case (see the top of this file); where all its times are multiples of 1000, moments coincide."""
    allocator = draw(st.sampled_from(allocators))
    grid = draw(st.sampled_from([1, 1_000, 1_000]))
    requests = draw(request_lists(grid, aligned=draw(st.booleans())))
    longest = max(request.prompt_tokens + request.output_tokens for request in requests)
    limits = [st.just(128), st.integers(longest, longest + 20), st.integers(longest // 2 + 1, longest)]
    limit = draw(st.one_of(limits))
    block = draw(st.sampled_from([1, 2, 3, 4, 8, 16]))
    chunk = draw(st.sampled_from([1, 2, 3, 5, 8, 16, 32]))
    whole = limit if allocator == "reserve" else longest
    seqs = draw(st.one_of(st.integers(1, 4), st.integers(3, 16)))
    chunked = draw(st.sampled_from([True, True, True, False]))
    least = seqs if chunked else max(seqs, limit)
    ends = st.integers(0, requests[-1].arrival_ps // grid + 200).map(grid.__mul__)
    return {
        "requests": requests,
        "allocator": allocator,
        "pool_slots": draw(pool_sizes(requests, whole, block if allocator == "paged" else 1)),
        "block_size": block,
        "chunk": chunk,
        "watermark": draw(st.sampled_from([0.0, 0.0, 0.01, 0.1, 0.29, 0.5])),
        "reserve_full_isl": draw(st.booleans()),
        "reference_need_slots": draw(st.integers(1, 64)),
        "max_num_seqs": seqs,
        "max_num_batched_tokens": least + draw(st.one_of(st.integers(0, 8), st.integers(0, 128))),
        "max_model_len": limit,
        "long_prefill_token_threshold": draw(st.sampled_from([0, 0, 1, 3, 7, 16])),
        "chunked_prefill": chunked,
        "horizon_ps": draw(one_in(5, ends)),
        "step_time": draw(step_times(grid)),
    }


@st.composite
def policies(
    draw: st.DrawFn, allocator: str, scheduler: str, preemption: str, *, padded: bool = False, samples: bool = True
) -> dict[str, Any]:
    """A case of `scenarios` with these policies, and the rest of what a scheduler can be told drawn at random."""
    case = draw(scenarios(allocators=(allocator if allocator in ALLOCATORS else "paged",)))
    case["allocator"] = allocator
    if allocator in REGIONS:
        case["options"] = draw(st.sampled_from(REGIONS[allocator]))
    if allocator == "no-cache":
        case["pool_slots"] = 0
        case["step_time"]["pair_ps"] = draw(st.sampled_from([0, 1, 7]))
    if allocator == "virtual":
        case["mapped_ahead"] = draw(st.booleans())
        case["step_time"]["mapped_ps"] = draw(st.sampled_from([0, 5]))
    if scheduler != "continuous":
        case["max_num_batched_tokens"] += case["max_model_len"]
    if samples:
        case["requests"] = [
            replace(request, more_outputs=tuple(draw(st.lists(st.integers(1, 30), max_size=3))))
            for request in case["requests"]
        ]
    least, most = case["max_num_seqs"], case["max_num_batched_tokens"]
    case |= {
        "scheduler": scheduler,
        "preemption": preemption,
        "kernel": "padded" if padded else "ragged",
        "victim": draw(st.sampled_from(list(VICTIMS))),
        "workspace_tokens": draw(one_in(4, st.integers(least, most))),
        "host_slots": draw(st.sampled_from([0, 40, 10_000])),
    }
    return case


def mixtures() -> list[tuple[str, str, str, bool]]:
    """Every (allocator, scheduler, preemption, padded) that there is."""
    return [
        (allocator, scheduler, preemption, padded)
        for allocator in KINDS
        for scheduler in SCHEDULERS
        for padded in (False, True)
        for preemption in PREEMPTIONS
        if not (scheduler == "static" and (padded or preemption == "swap"))
    ]
