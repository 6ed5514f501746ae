"""From four times all demand down to half of one prompt: every run ends by itself, and says what it had to do."""

from itertools import pairwise

import numpy as np
import pytest

from kvsim.content import Content, Run, own_stream
from kvsim.request import Request
from tests.laws.agreement import ends_of_all, keeps_every_law
from tests.laws.cases import allocator_of, everything, run_case

REQUESTS = 60
LIMIT = 320
"""`max_model_len`: some outputs are cut, no prompt is refused for it."""

KINDS = [
    ("paged", {"block_size": 1}),
    ("paged", {"block_size": 16}),
    ("paged", {"block_size": 64}),
    ("paged", {"block_size": 8, "watermark": 0.1, "reserve_full_isl": False}),
    ("contiguous", {"chunk": 1}),
    ("contiguous", {"chunk": 32}),
    ("contiguous", {"chunk": 256}),
    ("reserve", {}),
    ("prefix", {"block_size": 16}),
    ("prefix", {"block_size": 4, "watermark": 0.1}),
    ("prefix", {"block_size": 16, "scheduler": "vllm", "async_scheduling": True}),
    ("prefix", {"block_size": 4, "scheduler": "vllm", "async_scheduling": True, "policy": "priority"}),
    ("radix", {"block_size": 1}),
    ("radix", {"block_size": 16, "eviction": "lfu"}),
]
IDS = ["-".join([name, *(f"{key}={value}" for key, value in options.items())]) for name, options in KINDS]


def traffic():
    """Sixty requests, lengths skewed as real ones are, several arriving during each step; the same each time."""
    draw = np.random.default_rng(20240)
    prompts = np.clip(np.rint(draw.lognormal(np.log(60), 0.8, REQUESTS)), 4, 250).astype(int)
    outputs = np.clip(np.rint(draw.lognormal(np.log(30), 0.7, REQUESTS)), 1, 120).astype(int)
    arrivals = np.cumsum(np.rint(draw.exponential(10_000, REQUESTS))).astype(int)
    return [
        Request(
            id=number,
            arrival_ps=int(arrivals[number]),
            prompt_tokens=int(prompts[number]),
            output_tokens=int(outputs[number]),
            content=begins_alike(number, int(prompts[number])),
        )
        for number in range(REQUESTS)
    ]


def begins_alike(number, prompt_tokens):
    """Every other prompt begins with the same 48 tokens, as far as it goes."""
    shared = min(48, prompt_tokens) if number % 2 else 0
    return Content([Run(0, 0, shared), Run(own_stream(number), shared, prompt_tokens - shared)])


def case_of(name, options, pool_slots=1 << 16):
    case = {
        "requests": traffic(),
        "allocator": name,
        "pool_slots": pool_slots,
        "block_size": 16,
        "chunk": 16,
        "watermark": 0.0,
        "reserve_full_isl": True,
        "max_num_seqs": 32,
        "max_num_batched_tokens": 128,
        "max_model_len": LIMIT,
        "long_prefill_token_threshold": 0,
        "chunked_prefill": True,
        "horizon_ps": None,
        "step_time": {"base_ps": 20_000, "token_ps": 100, "context_ps": 2, "copied_ps": 5},
    }
    return case | options


def most_tokens(request):
    """Tokens that a request has written at its end."""
    return request.prompt_tokens + min(request.output_tokens, LIMIT - request.prompt_tokens) - 1


def ladder(name, options):
    """Pools in slots, from four times what all requests together take to half of what the shortest prompt takes."""
    capacity = allocator_of(case_of(name, options)).capacity
    requests = traffic()
    demand = sum(capacity(most_tokens(request)) for request in requests)
    prompts = sorted(capacity(request.prompt_tokens) for request in requests)
    largest = max(capacity(most_tokens(request)) for request in requests)
    rungs = [4 * demand, demand, demand // 2, demand // 4, demand // 8, demand // 16, 2 * largest, largest]
    rungs += [prompts[-1], prompts[-1] // 2, prompts[REQUESTS // 2], prompts[0] // 2]
    unit = options.get("block_size", 1)
    # A paged pool is whole blocks, and at least one.
    return sorted({max(pool // unit, 1) * unit for pool in rungs}, reverse=True)


def run(case, *, stepwise=False):
    log = run_case(case, stepwise=stepwise)
    # Every step computes a token, and what is computed is kept, lost or of a request that did not end well.
    lost = sum(request.lost_tokens for request in log.recording.requests.ended)
    assert log.recording.memory.steps <= lost + sum(most_tokens(request) for request in case["requests"])
    return log


def ended_as(log, end):
    return {request.id for request in log.recording.requests.ended if request.end == end}


@pytest.fixture(scope="module", params=KINDS, ids=IDS)
def climbed(request):
    """[(case, log)] of one allocator, roomiest pool first."""
    name, options = request.param
    cases = [case_of(name, options, pool) for pool in ladder(name, options)]
    return [(case, run(case)) for case in cases]


def test_on_every_rung_the_run_ends_by_itself_and_keeps_every_law(climbed):
    assert len(climbed) >= 8
    for case, log in climbed:
        keeps_every_law(case, log)
        assert sum(ends_of_all(case, log).values()) == REQUESTS


def test_on_every_rung_leaping_is_stepping(climbed):
    for case, log in climbed:
        assert everything(run(case, stepwise=True)) == everything(log)


def test_where_there_is_room_for_all_nothing_is_blocked(climbed):
    _, log = climbed[0]
    assert log.recording.requests.events == []
    assert log.recording.requests.preemptions == 0
    assert len(ended_as(log, "finished")) == REQUESTS


def test_what_is_too_large_is_refused_on_arrival_as_never_and_nothing_else_is(climbed):
    for case, log in climbed:
        capacity = allocator_of(case).capacity
        too_large = {r.id for r in case["requests"] if capacity(r.prompt_tokens) > case["pool_slots"]}
        assert ended_as(log, "rejected") == too_large
        never = {e.request: e for e in log.recording.requests.events if e.cause == "never"}
        assert never.keys() == too_large
        assert all(event.outcome == "reject" for event in never.values())
        for request in case["requests"]:
            if request.id in too_large:
                assert never[request.id].time_ps == request.arrival_ps
                assert never[request.id].need_slots == capacity(request.prompt_tokens)
    refused = [ended_as(log, "rejected") for _, log in climbed]
    assert all(roomier <= tighter for roomier, tighter in pairwise(refused))


def test_whoever_fits_the_pool_alone_finishes_and_no_one_else(climbed):
    """The oldest running request is never preempted, so everyone gets to run alone at worst.

    A contiguous region may stand in its own way: to grow it needs the room behind it, or a second region.
    """
    for case, log in climbed:
        capacity = allocator_of(case).capacity
        fitting = {r.id for r in case["requests"] if capacity(most_tokens(r)) <= case["pool_slots"]}
        finished = ended_as(log, "finished")
        if case["allocator"] == "contiguous":
            assert finished <= fitting
        else:
            assert finished == fitting


def test_pressure_shows_on_the_way_down(climbed):
    """Roomy pools block nobody; tight ones let requests wait, and preempt where they grow; the last refuse."""
    causes = {(event.cause, event.outcome) for _, log in climbed for event in log.recording.requests.events}
    assert ("never", "reject") in causes
    assert ("capacity", "wait") in causes
    name, chunk = climbed[0][0]["allocator"], climbed[0][0]["chunk"]
    if name in ("paged", "prefix", "radix"):
        assert {("capacity", "preempt"), ("outgrown", "abort")} <= causes
    if name == "contiguous" and chunk < 256:
        assert {("fragmentation", "wait"), ("outgrown", "abort")} <= causes


@pytest.mark.parametrize(("name", "options"), KINDS, ids=IDS)
def test_half_of_the_shortest_prompt_is_no_pool_at_all(name, options):
    case = case_of(name, options)
    shortest = min(request.prompt_tokens for request in case["requests"])
    unit = options.get("block_size", 1)
    case |= {"pool_slots": max(shortest // 2 // unit, 1) * unit}
    if unit > shortest // 2:
        # Not even one whole block: the least pool is one block, and requests beyond it are refused.
        case |= {"requests": [r for r in case["requests"] if r.prompt_tokens > unit]}
    log = run(case)
    assert ended_as(log, "rejected") == {request.id for request in case["requests"]}
    assert log.recording.memory.steps == 0
    assert log.end_ps == log.last_arrival_ps
