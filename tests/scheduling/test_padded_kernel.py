"""Padded attention: rows x longest, and the copies that keep the rows side by side."""

from kvsim.request import Request
from kvsim.step import Rows
from kvsim.timing.interface import LinearTiming
from tests.scheduling import stories
from tests.scheduling.stories import ends, ids, series, serve, step, submit


def scheduler(pool=1000, **rules):
    return stories.scheduler(pool=pool, kernel="padded", **rules)


def batch(*prompts):
    """An engine in which requests of these prompts are about to decode, and the requests."""
    engine = scheduler()
    sequences = submit(engine, *prompts)
    step(engine)
    return engine, sequences


def test_every_row_attends_to_as_many_tokens_as_the_longest():
    engine, _ = batch(5, 2, 3)
    assert [step(engine).rows for _ in range(2)] == [Rows(3, 3 * 6), Rows(3, 3 * 7)]


def test_the_longest_row_is_that_of_those_that_are_still_there():
    engine, (longest, *_) = batch(5, 2, 3)
    step(engine)
    engine.leave(longest)
    assert step(engine).rows == Rows(2, 2 * 5)


def test_whoever_joins_is_copied_to_the_end_before_its_first_decode():
    engine, _ = batch(5, 2, 3)
    assert [step(engine).gathered_slots for _ in range(3)] == [10, 0, 0]
    submit(engine, 7)
    assert [step(engine).gathered_slots for _ in range(3)] == [0, 7, 0]


def test_the_last_row_is_copied_into_the_place_of_one_that_leaves():
    engine, (first, *_) = batch(5, 2, 3)
    step(engine)
    engine.leave(first)
    assert step(engine).gathered_slots == 3 + 1


def test_when_the_last_row_leaves_nothing_is_copied():
    engine, (*_, last) = batch(5, 2, 3)
    step(engine)
    engine.leave(last)
    assert step(engine).gathered_slots == 0


def test_of_several_that_leave_together_each_place_is_filled_once():
    """Rows of 0, 1, 2, 3: when 0 and 3 leave, 2 is copied to the first place and 1 stays where it is."""
    engine, sequences = batch(5, 2, 3, 4)
    step(engine)
    for leaver in (sequences[0], sequences[3]):
        engine.leave(leaver)
    assert step(engine).gathered_slots == 3 + 1
    engine.leave(sequences[1])
    assert step(engine).gathered_slots == 0


def test_who_has_only_one_token_to_emit_never_has_a_row():
    engine, (first, *_) = batch(5, 2)
    engine.leave(first)
    assert step(engine).gathered_slots == 2


def test_a_preempted_row_is_filled_and_joins_again_at_the_end():
    """7 slots, prompts of 3 and 3: 1 finds no slot and goes; when 0 leaves, 1 is computed and copied to the end."""
    engine = scheduler(7)
    first, _ = submit(engine, 3, 3)
    step(engine)
    plan = step(engine)
    assert (ids(v.sequence for v in plan.preempted), plan.gathered_slots, plan.rows) == ([1], 3, Rows(1, 4))
    engine.leave(first)
    assert step(engine).gathered_slots == 0
    assert step(engine).gathered_slots == 4


def test_padding_and_gathering_take_their_time():
    """1 ps a context token, 10 a copied slot: two rows join, then the second moves to the place of the first.

    Prompts to 1,000. 5 + 2 slots copied, 2 rows of 6: 1,082. 0 is done; 3 slots copied, a row of 4: 1,034. A row
    of 5: 1,005.
    """
    timing = LinearTiming(step_ps=1000, per_context_ps=1, per_copied_ps=10)
    log = serve([Request(0, 0, 5, 2), Request(1, 0, 2, 4)], scheduler, timing=timing)
    assert ends(log) == {0: ("finished", 2082, 2), 1: ("finished", 2082 + 1034 + 1005, 4)}
    assert log.recording.gathered_slots == 7 + 3
    assert log.recording.padding_context_tokens == 12 - (6 + 3)
    assert series(log, "context_tokens") == [(0,), (12,), (4,), (5,)]


def test_ragged_attention_reads_what_is_there_and_gathers_nothing():
    engine = stories.scheduler()
    submit(engine, 5, 2, 3)
    step(engine)
    plan = step(engine)
    assert (plan.rows, plan.gathered_slots) == (Rows(3, 6 + 3 + 4), 0)
