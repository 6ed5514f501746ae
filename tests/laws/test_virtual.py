"""`virtual` under the whole engine: leaps are steps for pages of 1 to 2,048 tokens, under any pressure.

Pages mapped ahead make it paged with long blocks, where the naive engine is judge; pages that a step waits for cost
time, where a leap goes up to such a step.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvsim.memory.phases import TABLE_LIMIT
from kvsim.request import Request
from kvsim.step import ENDS
from tests.effort import examples
from tests.laws.cases import everything, run_case
from tests.laws.strategies import scenarios
from tests.laws.test_conservation import LAWS
from tests.laws.test_leaps_and_steps import agrees_with_naive
from tests.laws.test_pressure_ladder import REQUESTS, case_of, most_tokens

PAGES = [1, 2, 3, 7, 16, 32, 64, 256, 257, 300, 1024, 2048]


def in_pages(case, page_tokens, rows, *, mapped_ahead, mapped_ps=0):
    """The case with page rows for blocks: as many as hold its pool, and at least `rows`."""
    return case | {
        "allocator": "virtual",
        "mapped_ahead": mapped_ahead,
        "step_time": case["step_time"] | {"mapped_ps": mapped_ps},
        "block_size": page_tokens,
        "pool_slots": max(rows, -(-case["pool_slots"] // page_tokens)) * page_tokens,
        "watermark": 0.0,
    }


@settings(max_examples=examples(200), deadline=None)
@given(
    scenarios(allocators=("paged",)),
    st.sampled_from(PAGES),
    st.integers(1, 6),
    st.sampled_from([0, 1, 700, 40_000]),
)
def test_waiting_for_pages_leaping_is_stepping(case, page_tokens, rows, mapped_ps):
    case = in_pages(case, page_tokens, rows, mapped_ahead=False, mapped_ps=mapped_ps)
    leaping, stepping = (run_case(case, stepwise=stepwise) for stepwise in (False, True))
    assert everything(leaping) == everything(stepping)
    for law in LAWS:
        law(case, leaping)


@pytest.mark.parametrize("table_limit", [TABLE_LIMIT, 0], ids=["as it comes", "phases always counted"])
def test_with_pages_mapped_ahead_leaping_is_stepping_and_a_naive_engine_agrees(table_limit, monkeypatch):
    """The requests are short: that the form for long pages sees crossings and shortage too, it is used for all."""
    monkeypatch.setattr("kvsim.memory.phases.TABLE_LIMIT", table_limit)

    @settings(max_examples=examples(120), deadline=None)
    @given(scenarios(allocators=("paged",)), st.sampled_from(PAGES), st.integers(1, 6))
    def agree(case, page_tokens, rows):
        case = in_pages(case, page_tokens, rows, mapped_ahead=True)
        leaping, stepping = (run_case(case, stepwise=stepwise) for stepwise in (False, True))
        assert everything(leaping) == everything(stepping)
        agrees_with_naive(case, leaping)

    agree()


@settings(max_examples=examples(60), deadline=None)
@given(scenarios(allocators=("paged",)), st.sampled_from(PAGES), st.integers(1, 6))
def test_mapping_that_takes_no_time_changes_nothing(case, page_tokens, rows):
    cases = [in_pages(case, page_tokens, rows, mapped_ahead=ahead) for ahead in (False, True)]
    waiting, ahead = (run_case(one, stepwise=False) for one in cases)
    assert everything(waiting) == everything(ahead)


@pytest.mark.parametrize("page_tokens", [1, 32, 300, 1024])
def test_down_a_ladder_of_pools_every_run_ends_and_leaping_is_stepping(page_tokens):
    """From room for all at once to a single row; the step waits for every page."""
    requests = case_of("paged", {})["requests"]
    row_of = {r.id: -(-most_tokens(r) // page_tokens) for r in requests}
    all_rows, largest = sum(row_of.values()), max(row_of.values())
    rungs = {all_rows, all_rows // 4, all_rows // 16, 2 * largest, largest, -(-largest // 2), 1}
    outcomes, finished = set(), None
    for rows in sorted(rungs, reverse=True):
        case = in_pages(case_of("paged", {}, rows * page_tokens), page_tokens, 1, mapped_ahead=False, mapped_ps=40)
        log = run_case(case, stepwise=False)
        assert everything(log) == everything(run_case(case, stepwise=True))
        for law in LAWS:
            law(case, log)
        ended = log.recording.requests.ended
        counts = {end: sum(request.end == end for request in ended) for end in ENDS}
        assert sum(counts.values()) == REQUESTS
        assert counts["unfinished"] == counts["cancelled"] == 0
        # Whoever fits alone gets to run alone at worst, and nobody else ends well.
        done = {request.id for request in ended if request.end == "finished"}
        assert done == {id_ for id_, needed in row_of.items() if needed <= rows}
        assert finished is None or done <= finished
        finished = done
        events = log.recording.requests.events
        if rows == all_rows:
            assert not events
            assert len(done) == REQUESTS
        outcomes |= {(event.cause, event.outcome) for event in events}
    assert ("capacity", "wait") in outcomes
    if page_tokens <= 32:
        assert {("capacity", "preempt"), ("never", "reject"), ("outgrown", "abort")} <= outcomes


def test_a_step_that_maps_pages_takes_longer_by_the_time_of_each():
    """Pages of 4 tokens, 64 pages a row, 10 ps each: 640 ps a row, in the step that needs it."""
    lone = {
        "requests": [Request(id=0, arrival_ps=0, prompt_tokens=6, output_tokens=5)],
        "step_time": {"base_ps": 1000, "token_ps": 0, "context_ps": 0, "copied_ps": 0},
    }
    case = in_pages(case_of("paged", lone, 400), 4, 1, mapped_ahead=False, mapped_ps=10)
    for stepwise in (True, False):
        log = run_case(case, stepwise=stepwise)
        # The prompt's step maps two rows and emits token 1; tokens 7 and 8 are written into the second row; token 9
        # needs a third, token 10 does not.
        [ended] = log.recording.requests.ended
        assert ended.first_token_ps == 1000 + 2 * 640
        assert ended.end_ps == ended.first_token_ps + 4 * 1000 + 640
        assert log.recording.gaps.histogram.max_ps == 1640
