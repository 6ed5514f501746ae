"""The judge judged: requests and steps of the naive engine computed by hand."""

from typing import Any

import pytest

from tests.naive import Ended, Event, Outcome
from tests.naive_runs import ask, run, slots


def test_a_lone_request_is_computed_step_by_step_and_its_slots_are_accounted_for() -> None:
    outcome, timed, _ = run(ask(4, 3, at=5), block_size=2, pool_slots=10)
    assert outcome == Outcome(
        requests={0: Ended(5, 15, 35, "finished", "eos", 3, 0, 0, 0)},
        events=[],
        integrals=slots(used=90, reserved=70, free=190),
        peaks=slots(used=5, reserved=4, free=10),
        gaps=[10, 10],
        steps=3,
        max_running=1,
        stay_ps=30,
        end_ps=35,
    )
    assert timed == [(0, 0, [(4, 0)], 0), (1, 5, [], 0), (1, 6, [], 0)]


@pytest.mark.parametrize(
    ("prompt", "changes", "need"),
    [
        (10, {"max_model_len": 10}, 10),
        (9, {"pool_slots": 8, "block_size": 4}, 12),
        (9, {"pool_slots": 8, "allocator": "contiguous", "chunk": 5}, 10),
        (2, {"pool_slots": 8, "allocator": "reserve", "max_model_len": 9}, 9),
    ],
)
def test_a_prompt_that_can_never_fit_is_rejected_at_its_arrival(
    prompt: int, changes: dict[str, Any], need: int
) -> None:
    outcome, timed, _ = run(ask(prompt, 1, at=7), **changes)
    pool = outcome.integrals["free"] // 7
    assert outcome.requests == {0: Ended(None, None, 7, "rejected", None, 0, 0, 0, 0)}
    assert outcome.events == [Event(7, 0, "never", "reject", need, pool, pool)]
    assert (outcome.steps, outcome.stay_ps, timed) == (0, 0, [])


@pytest.mark.parametrize(
    ("output", "max_tokens", "generated", "reason"),
    [
        (3, None, 3, "eos"),
        (6, None, 6, "eos"),
        (9, None, 6, "max_model_len"),
        (9, 5, 5, "max_tokens"),
        (9, 6, 6, "max_tokens"),
        (9, 7, 6, "max_model_len"),
        (5, 5, 5, "eos"),
    ],
)
def test_a_request_finishes_at_the_first_of_its_limits(
    output: int, max_tokens: int | None, generated: int, reason: str
) -> None:
    outcome, *_ = run(ask(4, output, max_tokens=max_tokens), max_model_len=10)
    assert outcome.requests[0] == Ended(0, 10, 10 * generated, "finished", reason, generated, 0, 0, 0)


def test_a_prompt_is_computed_in_chunks_and_its_last_token_is_no_decode() -> None:
    outcome, timed, _ = run(ask(6, 1), ask(3, 1), max_num_batched_tokens=4, max_num_seqs=4)
    assert timed == [(0, 0, [(4, 0)], 0), (0, 0, [(2, 4), (2, 0)], 0), (0, 0, [(1, 2)], 0)]
    assert [outcome.requests[n].token_ps for n in (0, 1)] == [20, 30]


def test_without_chunked_prefill_a_prompt_waits_for_a_budget_that_holds_it_whole() -> None:
    _, timed, _ = run(ask(6, 2), ask(6, 1), chunked_prefill=False, max_model_len=10, max_num_batched_tokens=10)
    assert timed == [(0, 0, [(6, 0)], 0), (1, 7, [(6, 0)], 0)]


def test_the_long_prefill_threshold_counts_only_while_there_are_others() -> None:
    _, timed, _ = run(ask(9, 1), ask(3, 1), long_prefill_token_threshold=2)
    assert [chunks for _, _, chunks, _ in timed] == [[(2, 0), (2, 0)], [(2, 2), (1, 2)], [(5, 4)]]


def test_no_more_run_at_once_than_max_num_seqs() -> None:
    outcome, _, planned = run(ask(2, 1), ask(2, 1), ask(2, 1), max_num_seqs=2)
    assert planned == [(0, [0, 1]), (10, [2])]
    assert outcome.max_running == 2


def test_an_arrival_at_the_end_of_a_step_joins_the_next_one() -> None:
    outcome, *_ = run(ask(2, 5), ask(2, 1, at=10), ask(2, 1, at=11))
    assert [outcome.requests[n].admitted_ps for n in (1, 2)] == [10, 20]


def test_the_last_admitted_is_preempted_computes_again_and_keeps_its_tokens() -> None:
    outcome, timed, planned = run(ask(3, 4), ask(3, 4), pool_slots=8)
    assert outcome.requests == {
        0: Ended(0, 10, 40, "finished", "eos", 4, 0, 0, 0),
        1: Ended(0, 10, 60, "finished", "eos", 4, 1, 4, 4),
    }
    assert outcome.events == [
        Event(20, 0, "capacity", "preempt", 1, 0, 0),
        Event(30, 1, "capacity", "wait", 5, 2, 2),
    ]
    assert planned == [(0, [0, 1]), (10, [0, 1]), (20, [0]), (30, [0]), (40, [1]), (50, [1])]
    assert timed[4:] == [(0, 0, [(5, 0)], 0), (1, 6, [], 0)]
    assert outcome.gaps == [10, 10, 10, 10, 10, 30]


def test_a_preempted_request_goes_to_the_front_and_nobody_overtakes_it() -> None:
    outcome, *_ = run(ask(3, 4), ask(3, 4), ask(1, 1, at=15), pool_slots=8)
    assert outcome.requests[2].admitted_ps == 40


def test_a_preemption_forbids_every_admission_of_its_step_and_a_retry_is_no_new_event() -> None:
    outcome, _, planned = run(
        ask(2, 4), ask(2, 2), pool_slots=6, max_num_batched_tokens=3, max_num_seqs=3, reserve_full_isl=False
    )
    assert planned == [(0, [0, 1]), (10, [0, 1]), (20, [0]), (30, [0]), (40, [1])]
    assert outcome.events == [Event(20, 1, "capacity", "preempt", 1, 0, 0)]


def test_a_lone_request_that_outgrows_the_pool_is_aborted() -> None:
    outcome, *_ = run(ask(3, 5), pool_slots=4)
    assert outcome.requests == {0: Ended(0, 10, 20, "aborted", None, 2, 0, 0, 0)}
    assert outcome.events == [Event(20, 0, "outgrown", "abort", 1, 0, 0)]


@pytest.mark.parametrize(
    ("patience", "output", "ended"),
    [
        (0, 9, Ended(None, None, 0, "cancelled", None, 0, 0, 0, 0)),
        (10, 9, Ended(0, 10, 10, "cancelled", None, 1, 0, 0, 0)),
        (12, 9, Ended(0, 10, 20, "cancelled", None, 2, 0, 0, 0)),
        (12, 2, Ended(0, 10, 20, "finished", "eos", 2, 0, 0, 0)),
        (500, 2, Ended(0, 10, 20, "finished", "eos", 2, 0, 0, 0)),
    ],
)
def test_a_running_request_is_cancelled_at_the_end_of_the_step_unless_it_finishes_in_it(
    patience: int, output: int, ended: Ended
) -> None:
    outcome, *_ = run(ask(3, output, patience_ps=patience))
    assert (outcome.requests, outcome.end_ps) == ({0: ended}, ended.end_ps)


def test_a_waiting_request_is_cancelled_at_once_also_after_a_preemption() -> None:
    outcome, *_ = run(ask(3, 4), ask(3, 4, patience_ps=33), pool_slots=8)
    assert outcome.requests[1] == Ended(0, 10, 33, "cancelled", None, 2, 1, 4, 0)
    outcome, *_ = run(ask(3, 4), ask(3, 4, patience_ps=7), max_num_seqs=1)
    assert outcome.requests[1] == Ended(None, None, 7, "cancelled", None, 0, 0, 0, 0)


def test_a_cancelled_request_returns_its_slots_at_the_end_of_the_step() -> None:
    outcome, *_ = run(ask(2, 9, patience_ps=12), ask(3, 1), pool_slots=4)
    assert outcome.requests[1].admitted_ps == 20
    assert outcome.events == [Event(0, 1, "capacity", "wait", 3, 2, 2)]


def test_the_horizon_cuts_the_step_in_progress_and_counts_nobody_who_comes_later() -> None:
    outcome, *_ = run(ask(3, 9), ask(3, 9, at=25), ask(3, 9, at=26), pool_slots=10, horizon_ps=25)
    assert outcome.requests == {
        0: Ended(0, 10, 25, "unfinished", None, 2, 0, 0, 0),
        1: Ended(None, None, 25, "unfinished", None, 0, 0, 0, 0),
    }
    assert outcome.integrals == slots(used=50, reserved=45, free=155)
    assert (outcome.steps, outcome.stay_ps, outcome.end_ps) == (2, 25, 25)


def test_at_the_horizon_a_step_ends_but_none_starts() -> None:
    outcome, *_ = run(ask(3, 2), ask(3, 9), ask(200, 1, at=20), ask(3, 9, at=20), horizon_ps=20)
    assert [outcome.requests[n].end for n in range(4)] == ["finished", "unfinished", "rejected", "unfinished"]
    assert (outcome.steps, outcome.requests[1].generated) == (2, 2)
    assert outcome.requests[3].admitted_ps is None
    outcome, *_ = run(ask(3, 9), horizon_ps=20)
    assert outcome.peaks["used"] == 3  # the fourth is written at the horizon and stands for no time


def test_a_run_that_is_done_before_the_horizon_ends_with_its_last_request() -> None:
    outcome, *_ = run(ask(3, 1), pool_slots=10, horizon_ps=30)
    assert (outcome.integrals, outcome.end_ps) == (slots(reserved=30, free=70), 10)


def test_a_granted_allocation_closes_the_episode_so_that_the_next_failure_is_a_new_event() -> None:
    outcome, *_ = run(ask(2, 3), ask(2, 5), ask(2, 3), pool_slots=7)
    assert outcome.events == [
        Event(10, 1, "capacity", "preempt", 1, 0, 0),
        Event(20, 1, "capacity", "preempt", 1, 0, 0),
        Event(40, 1, "capacity", "preempt", 1, 0, 0),
        Event(50, 2, "capacity", "wait", 4, 1, 1),
    ]
    assert [outcome.requests[n].end_ps for n in range(3)] == [30, 60, 70]
    assert [outcome.requests[n].lost for n in range(3)] == [0, 3, 2 + 3]
