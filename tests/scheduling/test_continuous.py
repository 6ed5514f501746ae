"""The step rules of vLLM 0.33's synchronous scheduler, one by one (numbers as in its rule list, 10 to 18).

Pools are of 1-slot blocks unless told otherwise, so that slots and tokens are the same numbers.
"""

import pytest

from kvsim.memory.paged import PagedAllocator
from kvsim.memory.reserve import ReserveAllocator
from kvsim.request import Sequence
from kvsim.scheduling.continuous import ContinuousScheduler


def engine(pool=1000, *, block_size=1, watermark=0.0, max_num_seqs=8, max_num_batched_tokens=64, **rules):
    allocator = PagedAllocator(pool, block_size=block_size, watermark=watermark)
    return ContinuousScheduler(
        allocator, max_num_seqs=max_num_seqs, max_num_batched_tokens=max_num_batched_tokens, **rules
    )


def submit(scheduler, *prompts):
    """Sequences numbered on from those that are there, one for each prompt length."""
    first = max(ids(scheduler.live()), default=-1) + 1
    sequences = [Sequence(first + number, prompt, None) for number, prompt in enumerate(prompts)]
    for sequence in sequences:
        scheduler.submit(sequence)
    return sequences


def step(scheduler):
    """Plan a step and let it be over."""
    plan = scheduler.plan()
    scheduler.complete(plan)
    scheduler.allocator.audit(scheduler.live())
    return plan


def chunks(plan):
    return [(chunk.sequence.id, chunk.tokens) for chunk in plan.chunks]


def ids(sequences):
    return [sequence.id for sequence in sequences]


def waiting(scheduler):
    return [s.id for s in scheduler.live() if s.id not in scheduler.running]


# 10. One token budget a step: the running first, in order of admission, then the waiting.


def test_the_running_get_their_tokens_before_the_waiting():
    """Budget 8. Step 1: 8 of the 10 tokens of 0. Step 2: its other 2, then 1 has 3, then 2 has the 3 left of 9.
    Step 3: 0 and 1 decode (a token each), 2 computes the last 6: 8 in all; 3 waits for the next step.
    """
    scheduler = engine(max_num_batched_tokens=8)
    submit(scheduler, 10, 3, 9, 5)
    assert chunks(step(scheduler)) == [(0, 8)]
    plan = step(scheduler)
    assert chunks(plan) == [(0, 2), (1, 3), (2, 3)]
    assert ids(plan.admitted) == [1, 2]
    plan = step(scheduler)
    assert (plan.decodes, chunks(plan)) == (2, [(2, 6)])
    assert waiting(scheduler) == [3]
    plan = step(scheduler)
    assert (plan.decodes, chunks(plan)) == (3, [(3, 5)])


def test_a_step_never_takes_more_tokens_than_the_budget():
    scheduler = engine(max_num_batched_tokens=16)
    submit(scheduler, *range(1, 9))
    for _ in range(10):
        plan = step(scheduler)
        assert plan.decodes + sum(tokens for _, tokens in chunks(plan)) <= 16


def test_context_counts_the_written_tokens_and_the_one_being_computed():
    scheduler = engine()
    submit(scheduler, 5, 7)
    assert step(scheduler).context == 0
    assert step(scheduler).context == 6 + 8
    assert step(scheduler).context == 7 + 9


# 11. Caps on a chunk.


def test_the_threshold_caps_every_chunk_while_more_than_one_request_is_there():
    scheduler = engine(long_prefill_token_threshold=3)
    submit(scheduler, 10, 2, 4)
    assert chunks(step(scheduler)) == [(0, 3), (1, 2), (2, 3)]
    assert chunks(step(scheduler)) == [(0, 3), (2, 1)]


def test_the_threshold_says_nothing_to_a_request_that_is_alone():
    scheduler = engine(long_prefill_token_threshold=3)
    submit(scheduler, 10)
    assert chunks(step(scheduler)) == [(0, 10)]


def test_a_request_that_is_alone_no_longer_is_capped_from_then_on_and_the_other_way_round():
    scheduler = engine(long_prefill_token_threshold=3, max_num_batched_tokens=8)
    [first] = submit(scheduler, 30)
    assert chunks(step(scheduler)) == [(0, 8)]
    [second] = submit(scheduler, 20)
    assert chunks(step(scheduler)) == [(0, 3), (1, 3)]
    scheduler.leave(second)
    assert chunks(step(scheduler)) == [(0, 8)]
    assert first.written == 8 + 3 + 8


def test_the_threshold_counts_requests_that_wait_too():
    scheduler = engine(long_prefill_token_threshold=3, max_num_seqs=1)
    submit(scheduler, 10, 1)
    assert chunks(step(scheduler)) == [(0, 3)]


# 12. A running request without blocks: the last admitted is preempted, until it fits or has preempted itself.


def test_the_last_admitted_is_preempted_for_the_first():
    """9 slots, three prompts of 3: full. Request 0 needs a slot: 2 loses its 3; 0 and 1 decode on."""
    scheduler = engine(9)
    submit(scheduler, 3, 3, 3)
    step(scheduler)
    plan = step(scheduler)
    assert [(v.sequence.id, v.lost_tokens, v.decoding) for v in plan.preempted] == [(2, 3, True)]
    assert (plan.decodes, list(scheduler.running), waiting(scheduler)) == (2, [0, 1], [2])
    assert scheduler.allocator.free_blocks == 9 - 4 - 4
    [blocked] = plan.blocked
    assert (blocked.sequence.id, blocked.outcome, blocked.short.cause) == (0, "preempt", "capacity")
    assert blocked.short[1:] == (1, 0, 0)


def test_a_request_that_is_last_itself_is_preempted_itself():
    """7 slots, two prompts of 3: request 0 takes the last slot, request 1 finds none and goes."""
    scheduler = engine(7)
    submit(scheduler, 3, 3)
    step(scheduler)
    plan = step(scheduler)
    assert ids(v.sequence for v in plan.preempted) == [1]
    assert (plan.decodes, list(scheduler.running)) == (1, [0])
    assert [(b.sequence.id, b.outcome) for b in plan.blocked] == [(1, "preempt")]


def test_as_many_are_preempted_as_it_takes_last_first_and_they_keep_their_order():
    """8 slots without the full-prompt gate. Step 1: 4 tokens of 8, 1 and 1: 2 slots are left. Step 2: request 0
    wants its other 4: 2 goes (3 free), then 1 (4 free). In the queue 1 is before 2 again.
    """
    scheduler = engine(8, long_prefill_token_threshold=4, reserve_full_isl=False)
    submit(scheduler, 8, 1, 1)
    assert chunks(step(scheduler)) == [(0, 4), (1, 1), (2, 1)]
    plan = step(scheduler)
    assert chunks(plan) == [(0, 4)]
    assert [(v.sequence.id, v.lost_tokens) for v in plan.preempted] == [(2, 1), (1, 1)]
    assert [(b.sequence.id, b.outcome, b.short[1:3]) for b in plan.blocked] == [
        (0, "preempt", (4, 2)),
        (0, "preempt", (4, 3)),
    ]
    assert (list(scheduler.running), waiting(scheduler)) == ([0], [1, 2])


def test_who_has_preempted_itself_ends_the_round_and_those_before_it_keep_what_they_got():
    """8 slots, 3 + 4 taken: in step 2 request 0 gets the last one, and request 1 wants its other 4."""
    scheduler = engine(8, long_prefill_token_threshold=4, reserve_full_isl=False)
    submit(scheduler, 3, 8)
    assert chunks(step(scheduler)) == [(0, 3), (1, 4)]
    plan = step(scheduler)
    assert [(v.sequence.id, v.lost_tokens, v.decoding) for v in plan.preempted] == [(1, 4, False)]
    assert (plan.decodes, plan.chunks, ids(plan.granted)) == (1, [], [0])


# 13. Preemption: all blocks at once, computed from the start again, front of the queue, no admission in that step.


def test_the_preempted_go_to_the_front_of_the_queue_keep_their_tokens_and_start_again_from_none():
    scheduler = engine(9, max_num_seqs=3)
    submit(scheduler, 3, 3, 3, 1)
    step(scheduler)
    step(scheduler)
    assert waiting(scheduler) == [2, 3]
    victim = scheduler.head
    assert (victim.id, victim.tokens, victim.written, victim.decoding) == (2, 4, 0, False)


def test_no_one_is_admitted_in_a_step_that_preempts():
    """10 slots: 3 + 3 + 3 run. Step 2 takes the last slot for 0; 1 preempts 2; then 4 + 4 are held and 2 are free.
    Request 3 asks for 1 and would fit, but has to wait; in step 3 it is behind the preempted one.
    """
    scheduler = engine(10)
    submit(scheduler, 3, 3, 3)
    step(scheduler)
    submit(scheduler, 1)
    plan = step(scheduler)
    assert ids(v.sequence for v in plan.preempted) == [2]
    assert plan.admitted == []
    assert scheduler.allocator.free_blocks == 2
    assert waiting(scheduler) == [2, 3]


def test_a_resumed_request_computes_its_prompt_and_what_it_had_generated_as_one_prompt():
    scheduler = engine(9)
    first, second, _ = submit(scheduler, 3, 3, 3)
    step(scheduler)
    step(scheduler)
    scheduler.leave(first)
    scheduler.leave(second)
    plan = step(scheduler)
    assert ids(plan.admitted) == [2]
    assert chunks(plan) == [(2, 4)]


def test_a_resumed_request_is_the_last_admitted_from_then_on():
    scheduler = engine(12)
    a, b, _ = submit(scheduler, 3, 4, 4)
    step(scheduler)
    step(scheduler)
    assert waiting(scheduler) == [2]
    scheduler.leave(a)
    submit(scheduler, 1)
    assert ids(step(scheduler).admitted)[0] == 2
    assert next(reversed(scheduler.running.values())).admission > b.admission


# 14. Admission: budget, max_num_seqs, memory; the first that fails stops it.


def test_no_more_than_max_num_seqs_run():
    scheduler = engine(max_num_seqs=2)
    first, *_ = submit(scheduler, 1, 1, 1)
    assert ids(step(scheduler).admitted) == [0, 1]
    plan = step(scheduler)
    assert (plan.admitted, plan.blocked) == ([], [])
    scheduler.leave(first)
    assert ids(step(scheduler).admitted) == [2]


def test_a_head_that_does_not_fit_stops_admission_for_all_behind_it():
    scheduler = engine(10)
    submit(scheduler, 6, 5, 1)
    plan = step(scheduler)
    assert ids(plan.admitted) == [0]
    [blocked] = plan.blocked
    assert (blocked.sequence.id, blocked.outcome) == (1, "wait")
    assert blocked.short == ("capacity", 5, 4, 4)
    assert waiting(scheduler) == [1, 2]


def test_a_head_that_has_been_tried_leaves_the_steps_stable_until_something_changes():
    scheduler = engine(10)
    first, *_ = submit(scheduler, 6, 5, 1)
    step(scheduler)
    assert scheduler.stable_steps(7) == 7
    # Trying again gives the same answer: nothing but fewer free slots, since request 0 grows.
    assert step(scheduler).blocked[0].short == ("capacity", 5, 3, 3)
    assert scheduler.stable_steps(7) == 7
    scheduler.leave(first)
    assert scheduler.stable_steps(7) == 0
    assert ids(step(scheduler).admitted) == [1, 2]


def test_without_chunks_a_prompt_that_exceeds_the_budget_left_waits_and_stops_those_behind_it():
    scheduler = engine(max_num_batched_tokens=10, chunked_prefill=False)
    submit(scheduler, 6, 5, 1)
    plan = step(scheduler)
    assert chunks(plan) == [(0, 6)]
    # It is the budget, not memory, that is short: no blocked allocation.
    assert plan.blocked == []
    assert chunks(step(scheduler)) == [(1, 5), (2, 1)]


def test_a_request_that_left_the_queue_stops_no_one():
    scheduler = engine(10)
    _, second, _ = submit(scheduler, 6, 5, 1)
    step(scheduler)
    scheduler.leave(second)
    assert scheduler.waiting_count == 1
    assert ids(step(scheduler).admitted) == [2]


# 15. The full-prompt gate: all known tokens must fit now, although only the first chunk's slots are taken.


@pytest.mark.parametrize(("gate", "admitted"), [(True, []), (False, [1])])
def test_a_prompt_whose_first_chunk_fits_is_admitted_only_without_the_gate(gate, admitted):
    """8 slots, 2 taken and 1 more for the decode: 5 are free. A prompt of 7 by 3."""
    scheduler = engine(8, max_num_seqs=4, max_num_batched_tokens=4, reserve_full_isl=gate)
    submit(scheduler, 2)
    step(scheduler)
    submit(scheduler, 7)
    plan = step(scheduler)
    assert ids(plan.admitted) == admitted
    assert chunks(plan) == [(number, 3) for number in admitted]
    if gate:
        assert plan.blocked[0].short == ("capacity", 7, 5, 5)


def test_the_gate_reserves_nothing():
    """8 slots: two prompts of 6 by 2 pass it one after the other, though 12 slots are not there."""
    scheduler = engine(8, long_prefill_token_threshold=2)
    submit(scheduler, 6, 6)
    plan = step(scheduler)
    assert chunks(plan) == [(0, 2), (1, 2)]
    assert scheduler.allocator.free_blocks == 4


def test_nothing_is_reserved_for_output():
    scheduler = engine(8)
    submit(scheduler, 4, 4)
    assert ids(step(scheduler).admitted) == [0, 1]
    assert scheduler.allocator.free_blocks == 0


# 16. The watermark: free blocks that an admission leaves untouched while anything runs.


def test_the_watermark_says_nothing_while_nothing_runs():
    scheduler = engine(10, watermark=0.3)
    submit(scheduler, 10)
    assert ids(step(scheduler).admitted) == [0]


@pytest.mark.parametrize(("prompt", "admitted"), [(2, [1]), (3, [])])
def test_an_admission_beside_others_leaves_the_watermark_free(prompt, admitted):
    """10 blocks, 3 of them the watermark. Request 0 holds 5 in step 2: a prompt of 2 leaves 3 free, one of 3 only 2."""
    scheduler = engine(10, watermark=0.3)
    submit(scheduler, 4)
    step(scheduler)
    submit(scheduler, prompt)
    plan = step(scheduler)
    assert ids(plan.admitted) == admitted
    if not admitted:
        assert plan.blocked[0].short == ("capacity", prompt + 3, 5, 5)


def test_the_watermark_is_whole_blocks_rounded_down():
    """0.29 of 11 blocks, the null block included as the engine counts, is 3: 5 are free, 2 can be had."""
    scheduler = engine(10, watermark=0.29)
    submit(scheduler, 4)
    step(scheduler)
    submit(scheduler, 2)
    assert ids(step(scheduler).admitted) == [1]


def test_who_runs_may_grow_into_the_watermark():
    scheduler = engine(10, watermark=0.5)
    submit(scheduler, 8)
    step(scheduler)
    assert step(scheduler).decodes == step(scheduler).decodes == 1
    assert scheduler.allocator.free_blocks == 0


# 17. What is scheduled is computed; whoever has computed all it knows samples a token, which is never computed last.


def test_a_part_of_a_prompt_samples_nothing_and_its_end_does():
    scheduler = engine(max_num_batched_tokens=8)
    [sequence] = submit(scheduler, 12)
    assert scheduler.complete(scheduler.plan()) == []
    assert (sequence.written, sequence.tokens) == (8, 12)
    assert scheduler.complete(scheduler.plan()) == [sequence]
    assert (sequence.written, sequence.tokens, sequence.decoding) == (12, 13, True)


@pytest.mark.parametrize(("prompt", "output"), [(1, 1), (4, 1), (4, 2), (5, 4), (7, 10), (8, 9)])
def test_a_request_holds_the_blocks_of_all_but_its_last_token_at_its_end(prompt, output):
    scheduler = engine(64, block_size=4)
    submit(scheduler, prompt)
    for _ in range(output):
        scheduler.complete(scheduler.plan())
    held = scheduler.allocator.blocks - scheduler.allocator.free_blocks
    assert held == (prompt + output - 1 + 3) // 4


# 18. Who has finished gives its blocks back after the whole step.


def test_blocks_come_back_when_a_request_leaves_and_not_before():
    scheduler = engine(4)
    [first] = submit(scheduler, 3)
    submit(scheduler, 4)
    step(scheduler)
    assert scheduler.allocator.free_blocks == 1
    scheduler.leave(first)
    assert scheduler.allocator.free_blocks == 4
    assert ids(step(scheduler).admitted) == [1]


# What can never be served.


def test_a_lone_request_that_cannot_grow_is_aborted_as_outgrown():
    scheduler = engine(3)
    submit(scheduler, 3)
    step(scheduler)
    plan = scheduler.plan()
    assert ids(plan.aborted) == [0]
    assert plan.empty
    [blocked] = plan.blocked
    assert (blocked.outcome, blocked.short) == ("abort", ("outgrown", 1, 0, 0))
    assert scheduler.live() == []
    assert scheduler.allocator.free_blocks == 3


def test_a_resumed_request_that_has_grown_beyond_the_pool_is_aborted_and_the_next_one_served():
    """Blocks of 2 in a pool of 4 slots: request 1 comes to 5 tokens, 3 blocks, before it is preempted."""
    scheduler = engine(4, block_size=2)
    [sequence] = submit(scheduler, 4)
    sequence.tokens = 5
    submit(scheduler, 1)
    plan = scheduler.plan()
    assert ids(plan.aborted) == [0]
    assert plan.blocked[0].short == ("outgrown", 6, 4, 4)
    assert ids(plan.admitted) == [1]


def test_reserve_admits_by_the_whole_region():
    allocator = ReserveAllocator(100, max_model_len=40)
    scheduler = ContinuousScheduler(allocator, max_num_seqs=8, max_num_batched_tokens=64)
    submit(scheduler, 1, 1, 1)
    plan = step(scheduler)
    assert ids(plan.admitted) == [0, 1]
    assert plan.blocked[0].short == ("capacity", 40, 20, 20)


# Bounds, and what the engine asks.


def test_a_scheduler_that_could_not_run_anyone_or_starve_a_decode_is_refused():
    with pytest.raises(ValueError, match="max_num_seqs is 0"):
        engine(max_num_seqs=0)
    with pytest.raises(ValueError, match=r"max_num_batched_tokens is 7; it must be at least max_num_seqs \(8\)"):
        engine(max_num_seqs=8, max_num_batched_tokens=7)


def test_steps_are_stable_only_while_everyone_decodes_and_no_one_waits_untried():
    scheduler = engine(10)
    assert scheduler.stable_steps(9) == 0
    submit(scheduler, 4)
    assert scheduler.stable_steps(9) == 0
    step(scheduler)
    assert scheduler.stable_steps(9) == 9
    submit(scheduler, 9)
    assert scheduler.stable_steps(9) == 0
    step(scheduler)
    assert scheduler.stable_steps(9) == 9
