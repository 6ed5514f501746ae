"""The judge judged: slots, blocks, regions and blocked allocations of the naive engine computed by hand."""

import pytest

from tests.naive import Ended, Event
from tests.naive_runs import CONTIGUOUS, ask, run, slots


def test_the_tail_of_a_block_that_will_never_be_written_is_internal() -> None:
    outcome, *_ = run(ask(3, 1), block_size=4, pool_slots=8)
    assert outcome.integrals == slots(reserved=30, internal=10, free=40)


def test_an_empty_plan_takes_no_time_and_is_no_step() -> None:
    """A region between two holes preempts its neighbour, still does not fit, and leaves the pool to it."""
    outcome, _, planned = run(ask(3, 1), ask(3, 9), ask(2, 3, at=10), **CONTIGUOUS | {"pool_slots": 10})
    assert outcome.events == [
        Event(20, 1, "capacity", "preempt", 8, 2, 2),
        Event(20, 1, "outgrown", "abort", 8, 6, 4),
    ]
    assert planned == [(0, [0, 1]), (10, [1, 2]), (20, [2]), (30, [2])]
    assert outcome.requests[1] == Ended(0, 10, 20, "aborted", None, 2, 0, 0, 0)
    assert outcome.requests[2] == Ended(10, 20, 40, "finished", "eos", 3, 1, 2, 2)
    assert outcome.steps == 4


def test_the_watermark_is_demanded_only_while_others_run() -> None:
    """0.29 of 11 blocks, the null block included, are 3 whole ones."""
    changes = {"block_size": 2, "pool_slots": 20, "watermark": 0.29}
    outcome, *_ = run(ask(10, 1), ask(8, 1), **changes)
    assert outcome.events == [Event(0, 1, "capacity", "wait", 14, 10, 10)]
    outcome, *_ = run(ask(18, 1), **changes)
    assert outcome.events == []


@pytest.mark.parametrize(("gate", "admitted"), [(True, 10), (False, 0)])
def test_the_full_isl_gate_asks_for_the_whole_prompt_before_its_first_chunk(gate: bool, admitted: int) -> None:
    small = {"block_size": 2, "pool_slots": 6, "max_num_batched_tokens": 4, "max_num_seqs": 4}
    outcome, *_ = run(ask(2, 1), ask(5, 1), reserve_full_isl=gate, **small)
    assert outcome.events == ([Event(0, 1, "capacity", "wait", 6, 4, 4)] if gate else [])
    assert outcome.requests[1].admitted_ps == admitted


def test_a_contiguous_region_grows_in_place_where_the_hole_behind_it_allows() -> None:
    outcome, timed, _ = run(ask(3, 4), **CONTIGUOUS)
    assert outcome.integrals == slots(used=120, reserved=80, internal=40, free=240)
    assert [copied for *_, copied in timed] == [0, 0, 0, 0]


def test_a_region_that_cannot_grow_in_place_is_copied_and_its_source_held_to_the_end_of_the_step() -> None:
    changes = CONTIGUOUS | {"chunk": 2, "reference_need_slots": 5}
    outcome, timed, _ = run(ask(2, 3), ask(2, 2), **changes)
    assert [copied for *_, copied in timed] == [0, 4, 0]
    assert outcome.integrals == slots(used=70, moving=40, reserved=80, internal=10, external=80, free=80)
    outcome, *_ = run(ask(2, 3), ask(2, 2), **changes | {"pool_slots": 10})
    assert outcome.events[0] == Event(10, 1, "capacity", "preempt", 4, 2, 2)


def test_enough_slots_in_no_fitting_hole_is_fragmentation_and_a_changed_cause_is_a_new_event() -> None:
    outcome, *_ = run(ask(4, 1), ask(1, 4), ask(2, 2), ask(8, 1, at=5), ask(1, 1, at=15), **CONTIGUOUS)
    assert outcome.events == [
        Event(10, 3, "capacity", "wait", 8, 4, 4),
        Event(20, 3, "fragmentation", "wait", 8, 8, 4),
    ]
    assert outcome.requests[3].admitted_ps == 40
    assert outcome.peaks["external"] == 8


def test_a_reservation_beyond_the_true_end_is_internal_and_a_small_hole_external() -> None:
    outcome, *_ = run(
        ask(3, 1), ask(3, 2), allocator="reserve", max_model_len=10, pool_slots=25, reference_need_slots=8
    )
    assert outcome.integrals == slots(used=30, reserved=80, internal=190, external=50, free=150)
    outcome, *_ = run(*[ask(3, 1)] * 3, allocator="reserve", max_model_len=10, pool_slots=25)
    assert outcome.events == [Event(0, 2, "capacity", "wait", 10, 5, 5)]
    assert outcome.peaks["external"] == 0


def test_a_region_holds_the_whole_prompt_from_its_admission() -> None:
    outcome, *_ = run(ask(6, 1), **CONTIGUOUS, max_num_batched_tokens=4, max_num_seqs=4)
    assert outcome.integrals == slots(used=40, reserved=60 + 20, internal=20 + 20, free=80)


def test_the_lowest_hole_that_fits_is_taken() -> None:
    outcome, *_ = run(ask(4, 1), ask(1, 4), ask(4, 1, at=10), ask(8, 1, at=10), **CONTIGUOUS | {"pool_slots": 16})
    assert [outcome.requests[n].admitted_ps for n in (2, 3)] == [10, 10]


def test_the_source_of_a_copy_is_free_after_the_step() -> None:
    outcome, timed, _ = run(ask(2, 4), ask(1, 9), **CONTIGUOUS | {"chunk": 2})
    assert [copied for *_, copied in timed][:4] == [0, 2, 2, 0]
    assert outcome.events[0] == Event(30, 0, "capacity", "preempt", 6, 4, 4)
