"""Preemption by swap: written tokens wait in host memory and come back, over a link that takes its time."""

import pytest

from kvsim.memory.contiguous import ContiguousAllocator
from kvsim.memory.host import HostPool
from kvsim.memory.paged import PagedAllocator
from kvsim.request import Request
from kvsim.timing.interface import LinearTiming
from tests.scheduling import stories
from tests.scheduling.stories import chunks, ends, events, gaps, ids, records, serve, slots_ps, step, submit, waiting


def scheduler(pool=1000, *, host=1000, **rules):
    return stories.scheduler(pool=pool, preemption="swap", host=HostPool(host), **rules)


def swapped(plan):
    return [(v.sequence.id, v.lost_tokens, v.swapped_tokens, v.decoding) for v in plan.preempted]


def test_a_victims_tokens_wait_in_host_memory_and_none_are_lost():
    """9 slots, three prompts of 3: full. Request 0 needs a slot, and the 3 tokens of 2 cross the link."""
    engine = scheduler(9)
    submit(engine, 3, 3, 3)
    step(engine)
    plan = step(engine)
    assert swapped(plan) == [(2, 0, 3, True)]
    assert (plan.swapped_slots, engine.host.used, engine.head.id) == (3, 3, 2)


def test_it_decodes_on_in_the_step_in_which_it_comes_back():
    engine = scheduler(9)
    oldest, *_ = submit(engine, 3, 3, 3)
    step(engine)
    step(engine)
    engine.leave(oldest)
    plan = step(engine)
    assert (ids(plan.resumed), plan.admitted, chunks(plan), plan.decodes) == ([2], [], [], 2)
    # 1 attends to 5 tokens, 2 to the 3 that it had and one more.
    assert (plan.swapped_slots, plan.context, engine.host.used) == (3, 5 + 4, 0)
    assert engine.allocator.decodes.written == 5 + 4


def test_those_in_host_memory_come_back_in_the_order_in_which_they_were_admitted():
    """12 slots for three of 3: 2 goes in the third step, 1 in the sixth; both find room when 0 leaves."""
    engine = scheduler(12)
    oldest, *_ = submit(engine, 3, 3, 3)
    gone = [swapped(step(engine)) for _ in range(6)]
    assert gone == [[], [], [(2, 0, 4, True)], [], [(1, 0, 6, True)], []]
    assert waiting(engine) == [1, 2]
    engine.leave(oldest)
    plan = step(engine)
    assert (ids(plan.resumed), plan.swapped_slots) == ([1, 2], 10)
    assert list(engine.running) == [1, 2]


def test_who_finds_host_memory_full_loses_its_tokens_and_waits_in_the_queue():
    engine = scheduler(9, host=2)
    submit(engine, 3, 3, 3, 1)
    step(engine)
    plan = step(engine)
    assert (swapped(plan), plan.swapped_slots, engine.host.used) == ([(2, 3, 0, True)], 0, 0)
    assert waiting(engine) == [2, 3]


@pytest.mark.parametrize(("host", "taken"), [(8, 8), (7, 0)])
def test_host_memory_is_taken_in_whole_blocks(host, taken):
    """Blocks of 4, 4 of them: the 7 tokens of request 1 take 8 slots there, or are lost."""
    engine = scheduler(allocator=PagedAllocator(16, block_size=4), host=host)
    submit(engine, 7, 6)
    step(engine)
    step(engine)
    assert swapped(step(engine)) == [(1, 0, 7, True) if taken else (1, 7, 0, True)]
    assert engine.host.used == taken


def test_nobody_new_comes_before_those_in_host_memory():
    engine = scheduler(12)
    submit(engine, 3, 3, 3)
    for _ in range(3):
        step(engine)
    submit(engine, 1)
    assert (engine.allocator.free_blocks, engine.head.id) == (2, 2)
    assert step(engine).admitted == []


def test_who_is_swapped_out_within_its_prompt_goes_on_with_it():
    """Budget 4, 9 slots: 0 decodes while the prompt of 1 comes in chunks, until its third finds no room."""
    engine = scheduler(9, budget=4, seqs=4, reserve_full_isl=False)
    oldest, second = submit(engine, 2, 9)
    assert chunks(step(engine)) == [(0, 2), (1, 2)]
    assert chunks(step(engine)) == [(1, 3)]
    plan = step(engine)
    assert swapped(plan) == [(1, 0, 5, False)]
    engine.leave(oldest)
    plan = step(engine)
    assert (ids(plan.resumed), plan.admitted, chunks(plan), plan.swapped_slots) == ([1], [], [(1, 4)], 5)
    assert (plan.chunks[0].written, second.written, second.decoding) == (5, 9, True)


def test_coming_back_keeps_to_the_token_budget():
    """Budget 5, 24 slots. 1 has least work and goes for the prompt of 2; when 0 leaves, 2 takes all 5."""
    engine = scheduler(24, budget=5, seqs=4, reserve_full_isl=False, victim="least-work")
    first, *_ = submit(engine, 10, 2, 13)
    gone = [swapped(step(engine)) for _ in range(5)]
    assert gone == [[], [], [], [], [(1, 0, 3, True)]]
    engine.leave(first)
    plan = step(engine)
    assert (ids(plan.resumed), plan.decodes, chunks(plan), engine.allocator.free_blocks) == ([], 0, [(2, 5)], 11)
    plan = step(engine)
    assert (ids(plan.resumed), plan.decodes, chunks(plan)) == ([1], 2, [])


# With times.


def story(make=scheduler, **options):
    """9 slots for two of 4 prompt tokens: in the third step the pool is full, and 1 waits until 0 is done."""
    return serve([Request(0, 0, 4, 4), Request(1, 0, 4, 4)], lambda: make(9), **options)


def test_both_ways_over_the_link_take_their_time():
    """The step that swaps 4 or 5 slots out waits for them, and so does the one that has them back.

    Steps: prompts to 1,000; 0 takes the last slot at 1,000, 1 is swapped with 4: 2,040. 0 has 7 written at the end
    of its fourth, 4,040. Then 1 comes back with 4: 5,080; 6,080; 7,080.
    """
    log = story(timing=LinearTiming(step_ps=1000, per_swapped_ps=10))
    assert ends(log) == {0: ("finished", 4040, 4), 1: ("finished", 7080, 4)}
    assert log.recording.swapped_slots == 8


def test_nothing_is_lost_or_computed_again_and_the_gap_is_as_long_as_the_absence():
    log = story()
    [_, record] = records(log).values()
    assert (record.preemptions, record.lost_tokens, record.recomputed_tokens, record.swapped_tokens) == (1, 0, 0, 4)
    # 1 has its first token at 1,000 and the second at 5,000.
    assert gaps(log) == (6, 5 * 1000 + 4000, 4000)
    assert events(log) == [(1000, 1, "capacity", "preempt")]
    assert log.recording.memory.steps == 7


def test_what_waits_in_host_memory_is_in_no_class_of_the_pool():
    """0 grows alone from 1,000 to 4,000: 4 + 5 + 6 used, a slot reserved in each step."""
    log = story()
    assert slots_ps(log)["used"] == 1000 * (4 + 5 + 6) * 2
    assert slots_ps(log)["reserved"] == 1000 * (8 + 6)


def test_a_client_that_gives_up_gives_host_memory_back():
    hosts = []

    def make(pool):
        engine = scheduler(pool)
        hosts.append(engine.host)
        return engine

    log = serve([Request(0, 0, 4, 4), Request(1, 0, 4, 4, patience_ps=2500)], lambda: make(9))
    assert ends(log) == {0: ("finished", 4000, 4), 1: ("cancelled", 2500, 1)}
    assert log.recording.memory.totals.host_peak == 4
    assert [host.used for host in hosts] == [0, 0]


def test_what_a_plan_that_computes_nothing_has_moved_takes_the_time_of_the_next_step():
    """10 slots, concatenation: to grow, 0 needs 7 beside its 6. It sends 1 away in vain, and is aborted.

    1 is let in again in the same moment: its 3 tokens have crossed the link twice before its next step, 10 ps a slot.
    """
    timing = LinearTiming(step_ps=1000, per_swapped_ps=10)

    def make():
        return scheduler(allocator=ContiguousAllocator(10, growth="cat"))

    log = serve([Request(0, 0, 6, 9), Request(1, 0, 3, 2)], make, timing=timing)
    assert ends(log) == {0: ("aborted", 1000, 1), 1: ("finished", 2060, 2)}
    assert log.recording.swapped_slots == 6


@pytest.mark.parametrize("host", [0, 3])
def test_without_room_in_host_memory_swap_is_recompute(host):
    log = story(lambda pool: scheduler(pool, host=host))
    [_, record] = records(log).values()
    assert (record.lost_tokens, record.recomputed_tokens, record.swapped_tokens) == (4, 4, 0)
    assert log.recording.swapped_slots == 0
