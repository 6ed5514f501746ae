"""Prompts first: while any can be computed, those that decode stand still."""

from kvsim.memory.host import HostPool
from kvsim.request import Request
from kvsim.scheduling.prefill_first import PrefillFirstScheduler
from kvsim.step import NO_ROWS
from kvsim.timing.interface import LinearTiming
from tests.scheduling import stories
from tests.scheduling.stories import chunks, ends, events, gaps, ids, records, series, serve, step, submit, waiting


def scheduler(pool=1000, **rules):
    return stories.scheduler(PrefillFirstScheduler, pool, **rules)


def test_a_step_computes_prompts_or_decodes():
    first = scheduler()
    submit(first, 4)
    assert chunks(step(first)) == [(0, 4)]
    assert step(first).decodes == 1
    submit(first, 3)
    plan = step(first)
    assert (plan.stalled, plan.decodes, plan.rows, chunks(plan)) == (True, 0, NO_ROWS, [(1, 3)])
    assert first.allocator.decodes.written == 5 + 3
    assert step(first).decodes == 2


def test_prompts_padded_to_the_longest_keep_to_the_budget():
    """Two rows of 5 are 10; a third would make it 15."""
    first = scheduler(budget=10)
    submit(first, 4, 5, 3)
    plan = step(first)
    assert (chunks(plan), plan.padding_tokens) == ([(0, 4), (1, 5)], 1)
    plan = step(first)
    assert (chunks(plan), plan.padding_tokens, plan.stalled) == ([(2, 3)], 0, True)


def test_those_that_decode_wait_for_prompts_and_their_gaps_are_longer():
    """0 has tokens at 1,000, 2,000 and 4,000, for 1 is computed from 2,000 to 3,000; 1 at 3,000 and 4,000."""
    log = serve([Request(0, 0, 2, 3), Request(1, 1500, 5, 2)], scheduler)
    assert ends(log) == {0: ("finished", 4000, 3), 1: ("finished", 4000, 2)}
    assert gaps(log) == (3, 1000 + 2000 + 1000, 2000)


def test_who_samples_early_in_a_stall_waits_for_the_end_of_it():
    """Two prompts of 5 in two steps (budget 6): 0 waits 3,000 in all, 1 has its second token 2,000 after its first."""
    log = serve(
        [Request(0, 0, 2, 2), Request(1, 500, 5, 2), Request(2, 500, 5, 2)], lambda: scheduler(budget=6, seqs=4)
    )
    assert [records(log)[number].first_token_ps for number in range(3)] == [1000, 2000, 3000]
    assert {record.end_ps for record in records(log).values()} == {4000}
    assert gaps(log) == (3, 3000 + 2000 + 1000, 3000)


def test_a_stalled_step_takes_no_time_for_those_that_stand_still_and_no_slots():
    """100 a row, 1 a context token, 10 a prompt token: 20 + 100; 100 + 3; 100 + 50; two rows over 4 + 6 tokens."""
    timing = LinearTiming(step_ps=1000, per_sequence_ps=100, per_context_ps=1, per_prefill_ps=10)
    log = serve([Request(0, 0, 2, 3), Request(1, 1500, 5, 2)], scheduler, timing=timing)
    assert log.end_ps == 1120 + 1103 + 1150 + 1210
    assert series(log, "decode_tokens", "prefill_tokens", "used", "reserved") == [
        (0, 2, 0, 2),
        (1, 0, 2, 1),
        (0, 5, 3, 5),
        (2, 0, 3 + 5, 2),
    ]


def test_the_last_admitted_is_preempted_and_nobody_is_admitted_in_that_step():
    first = scheduler(9)
    submit(first, 3, 3, 3, 1)
    step(first)
    plan = step(first)
    assert ids(v.sequence for v in plan.preempted) == [2]
    assert (plan.decodes, waiting(first)) == (2, [2, 3])


def test_room_that_an_abort_gives_back_goes_to_the_head_of_the_queue():
    """4 slots: 0 takes them all, and 1 waits until 0 has outgrown the pool."""
    log = serve([Request(0, 0, 3, 9), Request(1, 0, 2, 1)], lambda: scheduler(4))
    assert ends(log) == {0: ("aborted", 2000, 2), 1: ("finished", 3000, 1)}
    assert events(log) == [(0, 1, "capacity", "wait"), (2000, 0, "outgrown", "abort")]


def test_who_waits_in_host_memory_comes_before_anybody_new():
    """12 slots: in the third step 2 is swapped out with its 4; 2 slots are free, one of which a new request wants."""
    first = scheduler(12, preemption="swap", host=HostPool(12))
    oldest, second, _ = submit(first, 3, 3, 3)
    step(first)
    step(first)
    assert ids(v.sequence for v in step(first).preempted) == [2]
    submit(first, 1)
    assert (first.allocator.free_blocks, first.head.id) == (2, 2)
    plan = step(first)
    assert (plan.decodes, chunks(plan), ids(plan.resumed)) == (2, [], [])
    first.leave(oldest)
    plan = step(first)
    assert (ids(plan.resumed), ids(plan.admitted), plan.decodes) == ([2], [], 2)
    first.leave(second)
    assert ids(step(first).admitted) == [3]
