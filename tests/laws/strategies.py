"""Random small scenarios as plain dicts, made to hurt: tiny pools, ties, cancellations, coinciding moments.

A case holds, in slots, tokens and integer picoseconds:

- `requests`: `kvsim.request.Request`s sorted by arrival, ids 0..n-1;
- the pool: `pool_slots` (for `paged` a multiple of `block_size`), `allocator` (`paged`, `contiguous`,
  `reserve`), `block_size`, `chunk` (a contiguous region is a multiple of it), `watermark` (share of the blocks),
  `reserve_full_isl`, `reference_need_slots` (the need that tells small holes when nothing waits);
- the engine: `max_num_seqs`, `max_num_batched_tokens` (at least `max_num_seqs`; at least `max_model_len` where
  `chunked_prefill` is off), `max_model_len`, `long_prefill_token_threshold` (0: off), `chunked_prefill`;
- `horizon_ps` (None: to the end) and `step_time`, the coefficients of `linear_step_ps`.

Keys that an allocator has no use for are there all the same.
"""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from kvsim.request import Request

ALLOCATORS = ("paged", "contiguous", "reserve")


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
def request_lists(draw: st.DrawFn, unit_ps: int, max_size: int = 14) -> list[Request]:
    """1-14 requests whose arrivals often coincide; some are impatient, some are cut short by their client.

    All times are multiples of `unit_ps`; give 1 picosecond for times that fall between the ends of steps.
    """
    count = draw(st.integers(1, max_size))
    span = draw(st.sampled_from([0, 3, 10, 40]))  # gaps in units: a burst, a crowd, a stream, a trickle
    gaps = draw(
        st.lists(st.integers(0, span * 1_000 if unit_ps == 1 else span), min_size=count, max_size=count)
    )
    lengths = st.one_of(st.integers(1, 8), st.integers(1, 60))
    outputs = st.one_of(st.integers(1, 4), st.integers(1, 40))
    limits = st.one_of(st.none(), st.none(), st.integers(1, 40))
    patience = st.one_of(st.none(), st.none(), st.none(), st.integers(0, 60))
    requests, arrival = [], 0
    for number, gap in enumerate(gaps):
        arrival += gap * unit_ps
        waits = draw(patience)
        requests.append(
            Request(
                id=number,
                arrival_ps=arrival,
                prompt_tokens=draw(lengths),
                output_tokens=draw(outputs),
                max_tokens=draw(limits),
                patience_ps=None if waits is None else waits * (997 if unit_ps == 1 else unit_ps),
            )
        )
    return requests


@st.composite
def pool_sizes(draw: st.DrawFn, requests: list[Request], whole: int, unit: int) -> int:
    """From four times all demand down to less than one prompt; `whole` is the most a request asks for."""
    prompt = max(request.prompt_tokens for request in requests)
    total = sum(request.prompt_tokens + request.output_tokens for request in requests)
    slots = draw(
        st.one_of(
            st.integers(whole // 2 + 1, 2 * whole),  # one or two at a time: preemption and abortion
            st.integers(whole, 4 * whole),
            st.integers(total, 4 * total),  # no pressure
            st.integers(1, prompt),  # some prompt never fits
        )
    )
    return -(-slots // unit) * unit


@st.composite
def scenarios(draw: st.DrawFn, allocators: tuple[str, ...] = ALLOCATORS) -> dict[str, Any]:
    """One case (see the top of this file); where all its times are multiples of 1000, moments coincide."""
    allocator = draw(st.sampled_from(allocators))
    grid = draw(st.sampled_from([1, 1_000, 1_000]))
    aligned = draw(st.booleans())
    requests = draw(request_lists(unit_ps=grid if aligned else 1))
    longest = max(request.prompt_tokens + request.output_tokens for request in requests)
    limit = draw(st.one_of(st.just(128), st.integers(longest, longest + 20), st.integers(2, longest)))
    block = draw(st.sampled_from([1, 2, 3, 4, 8, 16]))
    chunk = draw(st.sampled_from([1, 2, 5, 8, 16, 32]))
    whole = limit if allocator == "reserve" else longest
    seqs = draw(st.one_of(st.integers(1, 4), st.integers(3, 16)))
    chunked = draw(st.sampled_from([True, True, True, False]))
    least = seqs if chunked else max(seqs, limit)
    horizon = draw(st.one_of(st.none(), st.none(), st.none(), st.integers(0, 300)))
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
        "max_num_batched_tokens": draw(
            st.one_of(st.integers(least, least + 8), st.integers(least, least + 128))
        ),
        "max_model_len": limit,
        "long_prefill_token_threshold": draw(st.sampled_from([0, 0, 1, 3, 7, 16])),
        "chunked_prefill": chunked,
        "horizon_ps": None if horizon is None else horizon * grid,
        "step_time": draw(step_times(grid)),
    }
