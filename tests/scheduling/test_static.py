"""Static batching: one batch at a time, one rectangle, one moment at which all of it is handed over."""

import pytest

from kvsim.memory.paged import PagedAllocator
from kvsim.memory.prefix import PrefixAllocator
from kvsim.request import Request
from kvsim.scheduling.static import StaticScheduler
from kvsim.step import NO_ROWS, Rows
from kvsim.timing.interface import LinearTiming
from tests.scheduling import stories
from tests.scheduling.stories import (
    chunks,
    ends,
    events,
    gaps,
    ids,
    records,
    serve,
    slots_ps,
    step,
    submit,
    waiting,
)


def scheduler(pool=1000, **rules):
    return stories.scheduler(StaticScheduler, pool, **rules)


# The batch.


def test_a_batch_is_formed_of_what_waits_and_nobody_joins_it():
    static = scheduler(seqs=2)
    submit(static, 4, 2, 3)
    assert chunks(step(static)) == [(0, 4), (1, 2)]
    for _ in range(3):
        plan = step(static)
        assert (plan.decodes, chunks(plan), ids(plan.admitted)) == (2, [], [])
    assert waiting(static) == [2]


def test_a_seat_that_is_left_stays_empty_until_all_are_done():
    static = scheduler(seqs=2)
    first, second, _ = submit(static, 4, 2, 3)
    step(static)
    static.finish(second)
    assert static.done() == []
    assert chunks(step(static)) == []
    static.finish(first)
    assert ids(static.done()) == [0, 1]
    for member in (first, second):
        static.leave(member)
    assert static.done() == []
    assert chunks(step(static)) == [(2, 3)]


def test_prompts_are_padded_to_the_longest_and_rows_too():
    """4 and 2 tokens are a rectangle of 8, 2 of them nobody's; each row then attends to as many tokens as the first."""
    static = scheduler()
    submit(static, 4, 2)
    plan = step(static)
    assert (plan.padded_chunks, plan.padding_tokens, plan.rows) == ([(4, 0), (4, 0)], 2, NO_ROWS)
    plan = step(static)
    assert (plan.rows, plan.padding_tokens) == (Rows(2, 2 * 5), 0)


def test_who_is_done_keeps_its_row_at_the_length_of_the_longest():
    static = scheduler()
    first, _ = submit(static, 4, 2)
    step(static)
    static.finish(first)
    for length in (5, 6, 7):
        plan = step(static)
        assert (plan.decodes, plan.rows, plan.padding_tokens) == (1, Rows(2, 2 * length), 1)


def test_a_rectangle_keeps_to_the_budget():
    """Three rows of 5 would be 15."""
    static = scheduler(budget=10)
    submit(static, 4, 5, 1)
    assert chunks(step(static)) == [(0, 4), (1, 5)]


def test_a_batch_is_handed_over_when_its_last_member_is_done_and_the_others_slots_are_dead_till_then():
    """Request 1 has its only token at 1,000 and holds 2 dead slots until 0 has its third at 3,000; then 2 runs alone.

    Used: 4 and 5 tokens of 0, 3 of 2. Reserved: the prompts of 6 and 3 while they are computed, a slot a decode.
    """
    requests = [Request(0, 0, 4, 3), Request(1, 0, 2, 1), Request(2, 0, 3, 2)]
    log = serve(requests, lambda: scheduler(100, seqs=2))
    assert ends(log) == {0: ("finished", 3000, 3), 1: ("finished", 3000, 1), 2: ("finished", 5000, 2)}
    assert [records(log)[number].first_token_ps for number in range(3)] == [1000, 1000, 4000]
    assert slots_ps(log) == {
        "used": 1000 * (4 + 5 + 3),
        "reserved": 1000 * (6 + 1 + 1 + 3 + 1),
        "dead": 2 * 2000,
        "free": 1000 * (94 + 93 + 92 + 97 + 96),
    }
    assert log.recording.padding_tokens == 2 + 1 + 1
    assert log.recording.padding_context_tokens == 5 + 6
    assert gaps(log) == (3, 3000, 1000)


def test_the_slots_behind_a_finished_members_last_token_stay_internal():
    """Blocks of 4: request 1 has written 2 of its 4 slots."""
    requests = [Request(0, 0, 4, 2), Request(1, 0, 2, 1)]
    log = serve(requests, lambda: scheduler(allocator=PagedAllocator(16, block_size=4)))
    assert slots_ps(log) == {
        "used": 4000,
        "reserved": 1000 * (4 + 2) + 1000,
        "internal": 1000 * 2 + 1000 * (3 + 2),
        "dead": 2000,
        "free": 8000 + 4000,
    }


def test_a_batch_of_single_tokens_is_over_with_its_prompts():
    log = serve([Request(number, 0, 3, 1) for number in range(3)], lambda: scheduler(seqs=2))
    assert ends(log) == {0: ("finished", 1000, 1), 1: ("finished", 1000, 1), 2: ("finished", 2000, 1)}
    assert slots_ps(log) == {"reserved": 1000 * (6 + 3), "free": 1000 * (994 + 997)}


def test_all_rows_are_computed_so_that_a_step_of_the_batch_takes_as_long_whoever_is_done():
    """1,000 a step, 100 a row, 1 a context token, 1 a prompt token: prompts 2 x (100 + 4), then 2 x (5, 6, 7)."""
    timing = LinearTiming(step_ps=1000, per_sequence_ps=100, per_context_ps=1, per_prefill_ps=1)
    log = serve([Request(0, 0, 4, 1), Request(1, 0, 2, 4)], lambda: scheduler(), timing=timing)
    assert log.end_ps == 1208 + 1210 + 1212 + 1214


# Memory runs out.


def test_a_preempted_member_waits_for_a_later_batch():
    """8 slots for two of 3 + 4: in the third step 1 loses its 4; it starts again with 5 known tokens when 0 is done."""
    log = serve([Request(0, 0, 3, 4), Request(1, 0, 3, 4)], lambda: scheduler(8))
    assert ends(log) == {0: ("finished", 4000, 4), 1: ("finished", 6000, 4)}
    assert (records(log)[1].lost_tokens, records(log)[1].recomputed_tokens) == (4, 4)
    assert events(log) == [(2000, 0, "capacity", "preempt")]
    assert gaps(log) == (6, 1000 * 5 + 3000, 3000)


def test_with_abort_whoever_cannot_grow_fails_and_the_batch_goes_on():
    log = serve([Request(0, 0, 3, 4), Request(1, 0, 3, 4)], lambda: scheduler(8, preemption="abort"))
    assert ends(log) == {0: ("aborted", 2000, 2), 1: ("finished", 4000, 4)}
    assert events(log) == [(2000, 0, "capacity", "abort")]


def test_when_the_last_live_member_is_preempted_the_others_are_handed_over():
    """9 slots; 1 is done at once and holds its 5 dead ones, so that 0 cannot grow beyond 4."""
    log = serve([Request(0, 0, 3, 4), Request(1, 0, 5, 1)], lambda: scheduler(9))
    assert ends(log) == {0: ("finished", 4000, 4), 1: ("finished", 2000, 1)}
    assert records(log)[0].preemptions == 1


def test_with_never_a_batch_holds_only_who_can_reach_its_end():
    """10 tokens each at most, 25 slots: the third request waits for the second batch."""
    requests = [Request(number, 0, 4, 3, max_tokens=6) for number in range(3)]
    log = serve(requests, lambda: scheduler(25, preemption="never", max_model_len=64))
    assert ends(log) == {0: ("finished", 3000, 3), 1: ("finished", 3000, 3), 2: ("finished", 6000, 3)}
    assert log.recording.requests.events == [(0, 2, "capacity", "wait", 10, 5, 5)]


# Clients give up.


def test_a_finished_member_whose_client_gives_up_gives_back_its_dead_slots_and_ends_cancelled():
    log = serve([Request(0, 0, 4, 4), Request(1, 0, 2, 1, patience_ps=1500)], lambda: scheduler(100))
    assert ends(log) == {0: ("finished", 4000, 4), 1: ("cancelled", 2000, 1)}
    assert slots_ps(log)["dead"] == 2000
    assert log.recording.padding_tokens == 2 + 1


def test_when_the_last_live_member_is_cancelled_the_others_are_handed_over():
    log = serve([Request(0, 0, 4, 9, patience_ps=1500), Request(1, 0, 2, 1)], lambda: scheduler())
    assert ends(log) == {0: ("cancelled", 2000, 2), 1: ("finished", 2000, 1)}


def test_gaps_of_members_that_came_before_the_warm_up_do_not_count_for_those_that_came_after():
    """Both are done with the batch, but 0 came too early: of the tokens after 500 only those of 1 count."""
    requests = [Request(0, 0, 1, 2), Request(1, 0, 1, 1), Request(2, 600, 1, 4)]
    log = serve(requests, lambda: scheduler(seqs=2), warmup_ps=500)
    assert gaps(log) == (3, 3000, 1000)


def test_who_comes_while_a_batch_runs_is_seen_to_wait_from_the_next_step_on():
    """The queue is not empty from 2,000, where the step ends in which 1 comes, to the end of the batch at 5,000."""
    log = serve([Request(0, 0, 2, 5), Request(1, 1500, 2, 1)], lambda: scheduler(), window="saturated")
    assert log.recording.memory.totals.time_ps == 3000


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"preemption": "swap", "host": object()}, "a static batch preempts by recompute"),
        ({"kernel": "padded"}, "rect"),
    ],
)
def test_what_a_static_batch_cannot_be_told(rule, message):
    with pytest.raises(ValueError, match=message):
        scheduler(**rule)


def test_a_static_batch_is_not_for_a_cache_that_others_could_hit_meanwhile():
    with pytest.raises(ValueError, match="prefix keeps contents; a static batch keeps the slots"):
        StaticScheduler(PrefixAllocator(64, block_size=4), max_num_seqs=2, max_num_batched_tokens=16)
