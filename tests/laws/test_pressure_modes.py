"""The pressure ladder for every allocator and every preemption, and for the three schedulers on `paged` and `reserve`.

Clients allow at most 120 output tokens, which nobody exceeds: what `never` provides for. Some requests of the ladder
with samples ask for two or three.
"""

from dataclasses import replace

import pytest

from kvsim.scheduling.batching.queueing import PREEMPTIONS
from tests.laws.cases import allocator_of, everything
from tests.laws.test_conservation import LAWS
from tests.laws.test_pressure_ladder import LIMIT, REQUESTS, case_of, ended_as, ladder, most_tokens, run, traffic

MAX_TOKENS = 120
CLIENTS = [replace(request, max_tokens=MAX_TOKENS) for request in traffic()]

POOLS = {
    "paged": ("paged", {"block_size": 16}),
    "paged, watermark": ("paged", {"block_size": 8, "watermark": 0.1, "reserve_full_isl": False}),
    "virtual": ("virtual", {"block_size": 32, "mapped_ahead": False}),
    "contiguous": ("contiguous", {"chunk": 32}),
    "contiguous, cat": ("contiguous", {"options": {"growth": "cat"}}),
    "contiguous, compacted": ("contiguous", {"options": {"fit": "best", "compaction": "on-failure"}}),
    "contiguous, buddy": ("contiguous", {"options": {"growth": "double", "fit": "buddy"}}),
    "reserve": ("reserve", {}),
    "reserve, pow2": ("reserve", {"options": {"size": "pow2", "fit": "buddy"}}),
    "reserve, oracle": ("reserve", {"options": {"size": "oracle", "fit": "best"}}),
}
RULES = {
    "continuous": {"scheduler": "continuous"},
    "padded": {"scheduler": "continuous", "kernel": "padded"},
    "prefill first": {"scheduler": "prefill-first", "max_num_batched_tokens": 1024},
    "static": {"scheduler": "static", "max_num_batched_tokens": 1024},
}
LADDERS = [
    *((pool, "continuous", preemption) for pool in POOLS for preemption in PREEMPTIONS),
    *(
        (pool, rules, preemption)
        for pool in ("paged", "reserve")
        for rules in ("padded", "prefill first", "static")
        for preemption in PREEMPTIONS
        if (rules, preemption) != ("static", "swap")
    ),
]


@pytest.fixture(scope="module", params=LADDERS, ids=", ".join)
def climbed(request):
    """(pool, rules, preemption, [(case, log)]) of one ladder, roomiest pool first."""
    pool, rules, preemption = request.param
    name, options = POOLS[pool]
    options = options | RULES[rules] | {"preemption": preemption, "host_slots": 10_000, "requests": CLIENTS}
    cases = [case_of(name, options, slots) for slots in ladder(name, options)]
    return pool, rules, preemption, [(case, run(case)) for case in cases]


def fitting(case):
    """Requests that the empty pool can serve from beginning to end."""
    allocator = allocator_of(case)

    def need(request):
        output = min(request.output_tokens, LIMIT - request.prompt_tokens)
        tokens = [most_tokens(request), allocator.declare(request.prompt_tokens, output)]
        if case["preemption"] == "never":
            tokens.append(min(LIMIT, request.prompt_tokens + MAX_TOKENS))
        return max(map(allocator.capacity, tokens))

    return {request.id for request in case["requests"] if need(request) <= allocator.most_slots}


def test_on_every_rung_the_run_ends_by_itself_keeps_every_law_and_leaping_is_stepping(climbed):
    *_, runs = climbed
    assert len(runs) >= 8
    for case, log in runs:
        for law in LAWS:
            law(case, log)
        assert len(log.recording.requests.ended) == REQUESTS
        assert not ended_as(log, "unfinished") | ended_as(log, "cancelled")
    for case, log in runs[::3]:
        assert everything(run(case, stepwise=True)) == everything(log)


def test_whoever_fits_the_pool_alone_finishes_unless_it_is_sacrificed(climbed):
    """With abort it may not; and a region may stand in its own way, for to grow it needs a second place."""
    pool, _, preemption, runs = climbed
    for case, log in runs:
        finished = ended_as(log, "finished")
        grows = pool.startswith("contiguous") and preemption != "never"
        if preemption == "abort" or grows:
            assert finished <= fitting(case)
        else:
            assert finished == fitting(case)


def test_pressure_shows_as_the_mode_has_it(climbed):
    pool, _, preemption, runs = climbed
    seen = {(event.cause, event.outcome) for _, log in runs for event in log.recording.requests.events}
    lost = sum(request.lost_tokens for _, log in runs for request in log.recording.requests.ended)
    swapped = sum(log.recording.swapped_slots for _, log in runs)
    assert {("capacity", "wait"), ("never", "reject")} <= seen
    if preemption == "never" or pool.startswith("reserve"):
        # Whoever is let in has room up to its end.
        assert not {outcome for _, outcome in seen} & {"preempt", "abort"}
    else:
        assert ("outgrown", "abort") in seen
        assert (("capacity", "abort") in seen) == (preemption == "abort")
        assert (("capacity", "preempt") in seen) == (preemption != "abort")
    grows = not pool.startswith("reserve")
    assert (lost > 0) == (grows and preemption == "recompute")
    assert (swapped > 0) == (grows and preemption == "swap")


@pytest.mark.parametrize("preemption", PREEMPTIONS)
@pytest.mark.parametrize("pool", ["paged", "contiguous"])
@pytest.mark.parametrize("rules", [rules for rules in RULES if rules != "static"])
def test_with_samples_too_every_run_ends_by_itself_and_says_what_it_had_to_do(pool, rules, preemption):
    name, options = POOLS[pool]
    samples = [replace(request, more_outputs=(request.output_tokens, 9)[: request.id % 3]) for request in CLIENTS]
    options = options | RULES[rules] | {"preemption": preemption, "host_slots": 500}
    finished = []
    rungs = ladder(name, options)
    for slots in [*rungs[:-1:3], rungs[-1]]:
        case = case_of(name, options | {"requests": samples}, slots)
        log = run(case)
        for law in LAWS:
            law(case, log)
        assert everything(run(case, stepwise=True)) == everything(log)
        assert not ended_as(log, "unfinished")
        finished.append(len(ended_as(log, "finished")))
    assert finished[0] == REQUESTS
    assert finished[-1] == 0


def test_where_nothing_is_kept_there_is_no_pressure():
    for rules in RULES.values():
        case = case_of("no-cache", rules | {"requests": CLIENTS}, 0)
        log = run(case)
        for law in LAWS:
            law(case, log)
        assert len(ended_as(log, "finished")) == REQUESTS
        assert log.recording.requests.events == []
