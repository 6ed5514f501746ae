"""`prefix` behind the seam of all allocators: what hits change, what is cached, and leaps."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvsim.content import Content, Run
from kvsim.errors import CheckError
from kvsim.memory.paged import PagedAllocator
from kvsim.memory.prefix import PrefixAllocator
from kvsim.request import Sequence
from kvsim.scheduling.continuous import ContinuousScheduler
from kvsim.step import Ask, Chunk, Grant, Short

ENDLESS = 10_000


def sequence(number, prompt, shared=0):
    """`shared` tokens at its start are the same for all."""
    content = Content([Run(0, 0, shared), Run(1 + number, 0, ENDLESS)])
    return Sequence(number, prompt, None, tokens=prompt, content=content)


def admitted(pool, one):
    """All of its prompt in one step, in which the others decode."""
    hit = pool.lookup(one)
    one.admission = one.id
    assert isinstance(
        pool.acquire([Ask(one, one.tokens + pool.ahead, admit=True, gate=one.tokens, alone=True)], decodes=True), Grant
    )
    assert one.written == hit
    pool.settle([Chunk(one, one.tokens - hit, hit)])
    one.tokens += 1
    pool.begin_decode(one)
    return one


def test_a_prefix_that_is_still_held_is_shared_and_counts_once():
    pool = PrefixAllocator(40, block_size=4)
    one, two = admitted(pool, sequence(0, 10, 8)), admitted(pool, sequence(1, 9, 8))
    use = pool.usage()
    assert (use.used, use.unwritten, use.free, use.cached) == (8 + 3 + 1, 4, 40 - 16, 0)
    assert (pool.shared_slots, pool.owned(one), pool.owned(two)) == (8, 12, 12)
    pool.audit([one, two])


def test_what_nobody_holds_any_more_is_cached_as_far_as_its_blocks_are_full():
    pool = PrefixAllocator(40, block_size=4)
    pool.release(admitted(pool, sequence(0, 10, 8)))
    use = pool.usage()
    assert (use.used, use.cached, use.free) == (0, 8, 32)
    assert pool.lookup(sequence(1, 9, 8)) == 8
    assert pool.lookup(sequence(2, 8, 8)) == 4


def test_a_cached_block_is_evicted_when_it_is_handed_out_and_not_before():
    pool = PrefixAllocator(16, block_size=4)
    pool.release(admitted(pool, sequence(0, 8, 8)))
    admitted(pool, sequence(1, 7))
    assert pool.upkeep.evictions == 0
    admitted(pool, sequence(2, 4))
    assert (pool.upkeep.evictions, pool.lookup(sequence(3, 9, 8))) == (1, 4)


def test_a_short_names_all_that_nobody_references_as_free():
    pool = PrefixAllocator(16, block_size=4)
    pool.release(admitted(pool, sequence(0, 8, 8)))
    got = pool.acquire([Ask(sequence(1, 17), 17, admit=True, alone=True)])
    assert got == Short("capacity", 20, 16, 16)


def test_hits_on_free_blocks_are_part_of_the_need():
    """4 blocks: two cached and free, "2" holds two. "1" hits two, takes them back, and has none left for its third."""
    pool = PrefixAllocator(16, block_size=4)
    pool.release(admitted(pool, sequence(0, 8, 8)))
    admitted(pool, sequence(2, 7))
    assert isinstance(pool.acquire([Ask(sequence(1, 9, 8), 9, admit=True, alone=True)]), Short)


def released(pool, *sequences):
    """All of them computed at the same time, and over."""
    for one in [admitted(pool, one) for one in sequences]:
        pool.release(one)
    return pool


def test_what_one_finds_is_its_own_before_others_of_the_same_call_take_a_block():
    """Three blocks, all of them cached; what "2" finds is the next of the queue."""
    pool = released(PrefixAllocator(12, block_size=4), sequence(0, 4, 4))
    released(pool, sequence(1, 8))
    assert pool.pool.queue() == [1, 3, 2]
    three, two = sequence(3, 4), sequence(2, 5, 4)
    assert isinstance(pool.acquire([Ask(three, 4, admit=True), Ask(two, 5, admit=True)]), Grant)
    assert [pool._held[one.id].tables for one in (three, two)] == [[[3]], [[1, 2]]]
    pool.audit([three, two])


def test_what_two_of_one_call_find_comes_back_once():
    pool = released(PrefixAllocator(12, block_size=4), sequence(0, 4, 4))
    two = [sequence(1, 5, 4), sequence(2, 5, 4)]
    assert isinstance(pool.acquire([Ask(one, 5, admit=True) for one in two]), Grant)
    assert [pool._held[one.id].tables for one in two] == [[[1, 2]], [[1, 3]]]


def test_a_gate_and_a_watermark_hold_nothing_back_from_the_others_of_a_call():
    pool = PrefixAllocator(16, block_size=4, watermark=0.4)
    asks = [Ask(sequence(1, 8), 4, admit=True, gate=8), Ask(sequence(2, 8), 4, admit=True)]
    assert pool.watermark_blocks == 2
    assert isinstance(pool.acquire([*asks, Ask(sequence(3, 4), 4, admit=True)]), Short)
    assert isinstance(pool.acquire(asks), Grant)


def test_nobody_ends_and_stays_where_what_it_holds_can_be_hit():
    pool = PrefixAllocator(40, block_size=4)
    one = admitted(pool, sequence(0, 8))
    with pytest.raises(CheckError, match="prefix: request 0 has ended and is to keep its slots"):
        pool.retire(one)
    pool.audit([one])
    uncached = PrefixAllocator(40, block_size=4, caching=False)
    other = admitted(uncached, sequence(1, 8))
    uncached.retire(other)
    assert uncached.usage().dead == 8


def test_one_without_content_shares_only_with_itself():
    pool = PrefixAllocator(40, block_size=4)
    one = Sequence(0, 9, None, tokens=9)
    admitted(pool, one)
    assert pool.lookup(Sequence(1, 9, None, tokens=9)) == 0
    pool.release(one)
    one.written = 0
    assert pool.lookup(one) == 8


def test_a_double_free_is_refused():
    pool = PrefixAllocator(40, block_size=4)
    one = admitted(pool, sequence(0, 8))
    pool.release(one)
    with pytest.raises(CheckError, match="double free"):
        pool.release(one)


@pytest.mark.parametrize("value", [{"block_size": 0}, {"pool_slots": 3}, {"watermark": 1}])
def test_a_pool_that_cannot_be_is_refused(value):
    with pytest.raises(ValueError, match=next(iter(value))):
        PrefixAllocator(**{"pool_slots": 40, "block_size": 4} | value)


def waiting(number, other, heard, prompt):
    """One whose prompt of `prompt` tokens begins with the first `heard` tokens, prompt and output, of `other`."""
    content = Content([*other.content.part(0, heard), Run(1 + number, 0, ENDLESS)])
    return Sequence(number, prompt, None, tokens=prompt, content=content)


def found(pool, one):
    """The cached blocks that it finds, and which of them are free."""
    (blocks,) = pool.holdings.hit(pool._holding(one), one.tokens).tables
    return [(block, pool.pool.is_free(block)) for block in blocks]


def test_what_a_waiting_one_finds_lasts_until_the_next_block_of_its_content_is_full():
    pool = PrefixAllocator(40, block_size=4)
    one = admitted(pool, sequence(0, 5))
    assert pool.hit_lasts(waiting(1, one, 9, 12), 9) == 2  # tokens 6 and 7; the step that writes token 8 fills a block
    assert pool.hit_lasts(waiting(2, one, 7, 12), 9) == 9  # its second block goes on otherwise
    assert pool.hit_lasts(waiting(3, one, 8, 8), 9) == 9  # one token is always computed, so that block is no use


def test_what_a_waiting_one_finds_lasts_until_a_free_block_of_it_is_evicted():
    pool = PrefixAllocator(16, block_size=4)
    pool.release(admitted(pool, sequence(0, 8, 8)))
    admitted(pool, sequence(2, 4))
    # The only one that decodes takes the block that is empty now, and the first of those cached four steps later.
    assert pool.hit_lasts(sequence(3, 9, 8), 20) == 4


def test_where_slots_are_had_a_step_ahead_so_is_the_end_of_what_a_waiting_one_finds():
    pool = released(PrefixAllocator(16, block_size=4, ahead=1), sequence(0, 8, 8))
    admitted(pool, sequence(2, 3))
    # It has slots for 4 tokens and takes the last block that holds nothing, and four steps later one that is cached.
    assert pool.hit_lasts(sequence(3, 9, 8), 20) == 4


@settings(max_examples=150, deadline=None)
@given(st.data(), st.sampled_from([1, 2, 4]), st.booleans(), st.integers(0, 1))
def test_what_a_waiting_one_finds_lasts_for_exactly_so_many_steps(data, size, unknown_first, ahead):
    blocks = data.draw(st.integers(6, 24))
    pool = PrefixAllocator(size * blocks, block_size=size, unknown_first=unknown_first, ahead=ahead)
    running, everyone = [], []
    for number in range(data.draw(st.integers(1, 6))):
        one = sequence(number, data.draw(st.integers(1, 3 * size)), data.draw(st.integers(0, 2 * size)))
        if pool.free_blocks <= len(running) + 4:
            break
        running.append(admitted(pool, one))
        everyone.append(one)
        if len(running) > 1 and data.draw(st.booleans()):
            pool.release(running.pop(data.draw(st.integers(0, len(running) - 1))))
    other = data.draw(st.sampled_from(everyone))
    head = waiting(99, other, data.draw(st.integers(0, 6 * size)), data.draw(st.integers(1, 8 * size)))
    limit = pool.leap(40).steps
    lasts, before, steps = pool.hit_lasts(head, limit), found(pool, head), 0
    while steps < limit:
        assert isinstance(pool.acquire([], decodes=True), Grant)
        if found(pool, head) != before:
            break
        pool.settle([])
        steps += 1
    assert lasts == steps


LIVES = st.lists(st.tuples(st.integers(1, 20), st.integers(0, 12), st.integers(1, 12)), min_size=1, max_size=8)


def lived(pool, lives, leaping):
    """Run requests (prompt, shared, output) to their ends: the levels of every step, leapt over or decided."""
    scheduler = ContinuousScheduler(pool, max_num_seqs=4, max_num_batched_tokens=16)
    sequences = [sequence(number, prompt, shared) for number, (prompt, shared, _) in enumerate(lives)]
    left = {one.id: output for one, (_, _, output) in zip(sequences, lives, strict=True)}
    for one in sequences:
        scheduler.submit(one)
    seen, at = [], 0
    while scheduler.running_count or scheduler.waiting_count:
        steps = 0
        if leaping:
            steps = scheduler.stable_steps(min((left[number] - 1 for number in scheduler.running), default=0))
        leap = pool.leap(steps) if steps > 0 else None
        if leap and leap.steps:
            uses = [leap.use_at(step) for step in range(leap.steps)]
            leap.apply(leap.steps)
            for number in scheduler.running:
                left[number] -= leap.steps
            seen += [(at + step, use) for step, use in enumerate(uses)]
            at += leap.steps
            continue
        plan = scheduler.plan()
        seen.append((at, pool.usage()))
        decoding = [one for one in scheduler.running.values() if one.decoding]
        for one in [*decoding, *scheduler.complete(plan)]:
            left[one.id] -= 1
            if not left[one.id]:
                scheduler.leave(one)
        at += 1
        pool.audit(scheduler.live())
        use = pool.usage()
        assert min(use) >= 0
        assert sum(use) - use.largest_hole == pool.pool_slots
        assert at < 2000
    return seen, pool


@settings(max_examples=60, deadline=None)
@given(LIVES, st.integers(1, 5), st.integers(9, 20))
def test_leaping_equals_stepping_and_everything_is_conserved(lives, size, blocks):
    """The same levels at every step, and in the end the same queue, map and counts."""
    pool_slots = max(size * blocks, 33 + size)
    stepped, one = lived(PrefixAllocator(pool_slots, block_size=size), lives, False)
    leapt, other = lived(PrefixAllocator(pool_slots, block_size=size), lives, True)
    assert leapt == stepped
    assert one.pool.queue() == other.pool.queue()
    assert (one.pool.stored, one.pool.evicted) == (other.pool.stored, other.pool.evicted)


@settings(max_examples=40, deadline=None)
@given(LIVES, st.integers(1, 5), st.integers(9, 20))
def test_without_caching_it_is_paged(lives, size, blocks):
    pool_slots = max(size * blocks, 33 + size)
    ours, _ = lived(PrefixAllocator(pool_slots, block_size=size, caching=False), lives, False)
    theirs, _ = lived(PagedAllocator(pool_slots, block_size=size), lives, False)
    assert ours == theirs
