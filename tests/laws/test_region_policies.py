"""Every fit, growth, size and compaction of the region allocators: leaping is stepping, and every law holds.

The naive engine judges `contiguous` with first fit and chunks (`test_leaps_and_steps`); naive
models (`tests/memory/pairs.py`) judge the rest, allocator by allocator.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvsim.metrics.memory import SERIES
from kvsim.step import CLASSES
from tests.effort import examples
from tests.laws.cases import allocator_of, everything, run_case
from tests.laws.strategies import scenarios
from tests.laws.test_conservation import LAWS
from tests.laws.test_pressure_ladder import REQUESTS, case_of, ended_as, ladder, most_tokens, run

COMPACTED = {"compaction": "on-failure"}
POLICIES = {
    "best, chunk": ("contiguous", {"fit": "best", "chunk": 16}),
    "worst, chunk": ("contiguous", {"fit": "worst", "chunk": 16}),
    "next, chunk": ("contiguous", {"fit": "next", "chunk": 16}),
    "buddy, chunk": ("contiguous", {"fit": "buddy", "chunk": 7}),
    "first, double": ("contiguous", {"growth": "double"}),
    "buddy, double": ("contiguous", {"fit": "buddy", "growth": "double"}),
    "worst, exact": ("contiguous", {"fit": "worst", "growth": "exact"}),
    "first, exact, rounded": ("contiguous", {"growth": "exact", "rounding_slots": 5}),
    "first, cat": ("contiguous", {"growth": "cat"}),
    "buddy, cat": ("contiguous", {"fit": "buddy", "growth": "cat", "tensors": 4}),
    "best, cat by tensors": ("contiguous", {"fit": "best", "growth": "cat", "tensors": 8, "rounding_slots": 3}),
    "first, chunk, compacted": ("contiguous", {"chunk": 16} | COMPACTED),
    "next, double, compacted": ("contiguous", {"fit": "next", "growth": "double"} | COMPACTED),
    "best, cat, compacted": ("contiguous", {"fit": "best", "growth": "cat"} | COMPACTED),
    "first, cat by tensors, compacted": ("contiguous", {"growth": "cat", "tensors": 8} | COMPACTED),
    "reserve max, buddy": ("reserve", {"fit": "buddy"}),
    "reserve pow2, best": ("reserve", {"size": "pow2", "fit": "best"}),
    "reserve pow2, buddy": ("reserve", {"size": "pow2", "fit": "buddy"}),
    "reserve oracle, first": ("reserve", {"size": "oracle"}),
    "reserve oracle, buddy": ("reserve", {"size": "oracle", "fit": "buddy"}),
}


@pytest.mark.parametrize("policy", POLICIES)
def test_leap_and_stepwise_results_are_identical_and_keep_every_law(policy):
    name, options = POLICIES[policy]

    @settings(max_examples=examples(60))
    @given(scenarios(allocators=(name,)), st.sampled_from(["auto", "saturated"]))
    def agree(case, window):
        # The chunk that was drawn is as good as the policy's own.
        own = {"chunk": case["chunk"]} if "chunk" in options else {}
        case = case | {"options": options | own}
        leaping = run_case(case, stepwise=False)
        assert everything(leaping) == everything(run_case(case, stepwise=True))
        for law in LAWS:
            law(case, leaping)
        windowed = [run_case(case, stepwise=stepwise, window=window, warmup_ps=5_000) for stepwise in (False, True)]
        assert everything(windowed[0]) == everything(windowed[1])

    agree()


EVERY_RULE_ONCE = (
    "worst, chunk", "buddy, double", "first, exact, rounded", "best, cat by tensors", "next, double, compacted",
    "reserve max, buddy", "reserve pow2, best", "reserve oracle, first",
)  # fmt: skip
"""Policies that together have each fit, growth, compaction and reservation; `make test-all` climbs with all."""


@pytest.fixture(
    scope="module",
    params=[name if name in EVERY_RULE_ONCE else pytest.param(name, marks=pytest.mark.slow) for name in POLICIES],
)
def climbed(request):
    """[(case, log)] of one policy, roomiest pool first (see `test_pressure_ladder`)."""
    name, options = POLICIES[request.param]
    cases = [case_of(name, {"options": options}, pool) for pool in ladder(name, {"options": options})]
    return [(case, run(case)) for case in cases]


def test_on_every_rung_the_run_ends_by_itself_keeps_every_law_and_leaping_is_stepping(climbed):
    assert len(climbed) >= 8
    for case, log in climbed:
        for law in LAWS:
            law(case, log)
        assert len(log.recording.requests.ended) == REQUESTS
        assert not ended_as(log, "unfinished")
        assert not ended_as(log, "cancelled")
        assert everything(run(case, stepwise=True)) == everything(log)


def test_whoever_can_never_be_served_is_refused_and_whoever_fits_alone_gets_its_turn(climbed):
    for case, log in climbed:
        allocator = allocator_of(case)

        def need(request, allocator=allocator, case=case):
            output = min(request.output_tokens, case["max_model_len"] - request.prompt_tokens)
            return max(
                allocator.capacity(most_tokens(request)),
                allocator.capacity(max(1, allocator.declare(request.prompt_tokens, output))),
            )

        fitting = {request.id for request in case["requests"] if need(request) <= allocator.most_slots}
        finished = ended_as(log, "finished")
        if case["allocator"] == "reserve":
            assert finished == fitting
            assert ended_as(log, "rejected") == {request.id for request in case["requests"]} - fitting
            assert log.recording.requests.preemptions == 0
        else:
            # A region may stand in its own way: to grow it needs a second place, or the room behind it.
            assert finished <= fitting
        if case["options"].get("growth") == "cat":
            assert log.recording.memory.totals.peaks[CLASSES.index("moving")] > 0 or not finished
        if case["allocator"] == "reserve":
            assert log.recording.copied_slots == 0


def test_compaction_leaves_no_fragmentation_unanswered_and_never_compacts_without_need(climbed):
    outcomes = set()
    for case, log in climbed:
        events = log.recording.requests.events
        compacts = case["options"].get("compaction") == "on-failure"
        outcomes |= {event.outcome for event in events}
        for event in events:
            if event.outcome == "compact":
                assert compacts
                assert event.cause == "fragmentation"
                assert log.recording.copied_slots > 0
            elif compacts:
                assert event.cause != "fragmentation"
    if climbed[0][0]["options"].get("compaction"):
        assert "compact" in outcomes


@pytest.mark.parametrize("policy", ["buddy, chunk", "reserve oracle, buddy", "first, exact, rounded"])
def test_what_is_rounded_up_shows_as_external_while_requests_run(policy):
    name, options = POLICIES[policy]
    case = case_of(name, {"options": options}, 2048)
    log = run(case)
    width = len(SERIES)
    series = log.recording.memory.series
    rows = [dict(zip(SERIES, series[at : at + width], strict=True)) for at in range(0, len(series), width)]
    busy = [row for row in rows if row["running"]]
    assert busy
    assert sum(row["external"] > 0 for row in busy) > len(busy) / 2
    assert len(ended_as(log, "finished")) == REQUESTS
