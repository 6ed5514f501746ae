"""`radix` behind the seam of all allocators: what is visible when, what comes free, what stays and what goes."""

import pytest

from kvsim.content import Content, Run
from kvsim.errors import CheckError
from kvsim.memory.prefix import PrefixAllocator
from kvsim.memory.radix.allocator import RadixAllocator
from kvsim.request import Sequence
from kvsim.step import Ask, Chunk, Grant, Short

ENDLESS = 10_000


def sequence(number, prompt, shared=0, priority=0):
    """`shared` tokens at its start are the same for all."""
    content = Content([Run(0, 0, shared), Run(1 + number, 0, ENDLESS)])
    return Sequence(number, prompt, None, tokens=prompt, content=content, priority=priority, admission=number)


def granted(pool, one, tokens=None):
    """It is admitted for its first `tokens` tokens; the chunk that this makes."""
    hit, tokens = pool.lookup(one), tokens or one.tokens
    assert isinstance(pool.acquire([Ask(one, tokens, admit=True)]), Grant)
    assert one.written == hit
    return Chunk(one, tokens - hit, hit)


def computed(pool, *chunks):
    """A step of these chunks, in which nobody decodes; those whose prompt is complete decode from now on."""
    news = pool.settle(chunks, stalled=True)
    for one in {chunk.sequence for chunk in chunks}:
        if one.written == one.tokens:
            one.tokens += 1
            pool.begin_decode(one)
    return news


def admitted(pool, one):
    computed(pool, granted(pool, one))
    return one


def decoded(pool, steps):
    for _ in range(steps):
        assert isinstance(pool.acquire([], decodes=True), Grant)
        pool.settle([])


def test_a_prefix_is_found_token_by_token_and_never_the_last_token():
    pool = RadixAllocator(100)
    admitted(pool, sequence(0, 10, 7))
    assert pool.lookup(sequence(1, 20, 7)) == 7
    assert pool.lookup(sequence(2, 7, 7)) == 6


def test_larger_pages_are_found_whole():
    pool = RadixAllocator(100, page_size=4)
    admitted(pool, sequence(0, 11, 11))
    assert [pool.lookup(sequence(number, number, 11)) for number in (5, 8, 9, 12)] == [4, 4, 8, 8]


def test_only_the_rest_takes_slots_and_what_is_shared_counts_once():
    pool = RadixAllocator(100)
    one, two = admitted(pool, sequence(0, 10, 8)), admitted(pool, sequence(1, 9, 8))
    use = pool.usage()
    assert (use.used, use.unwritten, use.cached, use.free) == (8 + 2 + 1, 0, 0, 89)
    assert (pool.shared_slots, pool.owned(one), pool.owned(two)) == (8, 10, 9)
    pool.audit([one, two])


def test_equal_prompts_in_one_step_both_compute_and_the_second_copy_comes_free():
    """In vLLM's pool of blocks the second finds what the first will write in the same step."""
    pool = RadixAllocator(100)
    chunks = [granted(pool, sequence(number, 10, 10)) for number in (0, 1)]
    assert [chunk.tokens for chunk in chunks] == [10, 10]
    assert (pool.usage().unwritten, pool.shared_slots) == (20, 0)
    assert computed(pool, *chunks)
    assert (pool.usage().used, pool.usage().free, pool.shared_slots) == (10, 90, 10)
    vllm = PrefixAllocator(100, block_size=1)
    assert [granted(vllm, sequence(number, 10, 10)).tokens for number in (0, 1)] == [10, 1]


def test_nothing_is_visible_before_the_step_that_computes_it_is_over():
    pool = RadixAllocator(100)
    chunk = granted(pool, sequence(0, 10, 10), tokens=6)
    assert pool.lookup(sequence(1, 10, 10)) == 0
    assert pool.settle([chunk])
    assert pool.lookup(sequence(1, 10, 10)) == 6


def test_what_ends_stays_with_its_output_but_for_the_page_that_is_not_full():
    pool = RadixAllocator(100, page_size=4)
    one = admitted(pool, sequence(0, 6, 6))
    decoded(pool, 5)
    pool.release(one)
    use = pool.usage()
    assert (use.used, use.cached, use.free) == (0, 8, 92)
    # Prompt and output as somebody's next prompt.
    assert pool.lookup(Sequence(1, 20, None, tokens=20, content=one.content)) == 8


def test_what_is_preempted_leaves_its_output_and_finds_its_prompt_again():
    pool = RadixAllocator(100)
    one = admitted(pool, Sequence(0, 6, None, tokens=6))
    decoded(pool, 5)
    pool.preempt(one)
    assert (pool.usage().cached, one.written, one.tokens) == (6, 11, 12)
    one.written = 0
    assert pool.lookup(one) == 6
    assert pool.lookup(Sequence(1, 12, None, tokens=12)) == 0


def test_only_a_shortfall_evicts_and_no_more_leaves_than_it_takes():
    pool = RadixAllocator(30)
    for number in (0, 1):
        pool.release(admitted(pool, sequence(number, 10)))
    admitted(pool, sequence(2, 10))
    assert (pool.upkeep.evictions, pool.usage().free, pool.usage().cached) == (0, 0, 20)
    decoded(pool, 1)
    # The least recently used leaf went whole.
    assert (pool.upkeep.evictions, pool.usage().free, pool.usage().cached) == (10, 9, 10)
    assert pool.lookup(sequence(0, 11)) == 0
    assert pool.lookup(sequence(1, 11)) == 10


def test_with_larger_pages_room_is_made_for_a_page_more_than_is_taken():
    """SGLang asks for a page for everyone who decodes, whoever needs one."""
    pool = RadixAllocator(12, page_size=4)
    pool.release(admitted(pool, sequence(0, 4)))
    one = admitted(pool, sequence(1, 5))
    assert (pool.usage().cached, pool.usage().free, pool.upkeep.evictions) == (0, 4, 1)
    decoded(pool, 1)
    assert (pool.owned(one), pool.usage().free) == (8, 4)


def test_output_can_go_without_its_prompt():
    pool = RadixAllocator(20)
    one = admitted(pool, sequence(0, 8))
    decoded(pool, 6)
    pool.release(one)
    admitted(pool, sequence(1, 10))
    assert (pool.upkeep.evictions, pool.lookup(sequence(0, 20))) == (6, 8)


def test_a_hit_on_what_nobody_locks_is_part_of_the_need():
    """10 slots: 6 cached, 3 taken, 1 free. "2" would lock the 6 and need 2 more."""
    pool = RadixAllocator(10)
    pool.release(admitted(pool, sequence(0, 6, 6)))
    admitted(pool, sequence(1, 3))
    assert pool.acquire([Ask(sequence(2, 8, 6), 8, admit=True)]) == Short("capacity", 8, 7, 7)
    assert isinstance(pool.acquire([Ask(sequence(2, 7, 6), 7, admit=True)]), Grant)


def test_two_that_hit_the_same_leaf_in_one_call_need_it_once():
    pool = RadixAllocator(10)
    pool.release(admitted(pool, sequence(0, 6, 6)))
    asks = [Ask(sequence(number, 8, 6), 8, admit=True) for number in (1, 2)]
    assert isinstance(pool.acquire(asks), Grant)
    assert (pool.usage().free, pool.usage().cached) == (0, 0)


def test_a_short_changes_nothing_not_even_the_edges():
    pool = RadixAllocator(20)
    pool.release(admitted(pool, sequence(0, 10, 10)))
    before = [(node, node.tokens, node.stamp) for node in pool.tree.nodes()]
    assert isinstance(pool.acquire([Ask(sequence(1, 21, 5), 21, admit=True)]), Short)
    assert [(node, node.tokens, node.stamp) for node in pool.tree.nodes()] == before


def test_the_gate_counts_what_is_found():
    pool = RadixAllocator(10)
    one = admitted(pool, sequence(0, 6, 6))
    assert isinstance(pool.acquire([Ask(sequence(1, 11, 6), 7, admit=True, gate=11)]), Short)
    assert isinstance(pool.acquire([Ask(sequence(1, 10, 6), 7, admit=True, gate=10)]), Grant)
    assert pool.owned(one) == 6


def test_a_leap_ends_before_the_step_that_has_to_evict():
    pool = RadixAllocator(30)
    pool.release(admitted(pool, sequence(0, 10)))
    admitted(pool, sequence(1, 6))
    admitted(pool, sequence(2, 7))
    leap = pool.leap(100)
    assert (leap.steps, leap.use_at(2).free, leap.use_at(2).cached) == (3, 1, 10)
    leap.apply(3)
    assert pool.leap(100).steps == 0
    decoded(pool, 1)
    assert (pool.upkeep.evictions, pool.leap(100).steps) == (10, 4)


def test_the_tree_keeps_longest_what_is_most_urgent():
    """The lowest number goes first in a queue, and stays longest in the tree."""
    pool = RadixAllocator(30, eviction="priority")
    for number, priority in enumerate((1, 0, 2)):
        pool.release(admitted(pool, sequence(number, 10, priority=priority)))
    admitted(pool, sequence(3, 20))
    assert [pool.lookup(sequence(number, 11)) for number in range(3)] == [0, 10, 0]


def test_nobody_ends_and_stays_where_what_it_holds_can_be_hit():
    pool = RadixAllocator(40)
    one = admitted(pool, sequence(0, 8))
    with pytest.raises(CheckError, match="radix: request 0 has ended and is to keep its slots"):
        pool.retire(one)
    pool.audit([one])


def test_a_double_free_is_refused():
    pool = RadixAllocator(40)
    one = admitted(pool, sequence(0, 8))
    pool.preempt(one)
    for verb in (pool.release, pool.preempt):
        with pytest.raises(CheckError, match="double free"):
            verb(one)


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda pool: pool.tree.lock(next(pool.tree.nodes())), "locks of the tree"),
        (lambda pool: pool.pool.take(1), "do not add up"),
        (lambda pool: setattr(pool, "_row_slots", 1), "slots, 1 are counted"),
        (lambda pool: setattr(pool, "_prefill_written", 1), "have written 8 tokens, 9"),
        (lambda pool: setattr(pool._rows[0], "protected", 7), "do not add up"),
        (lambda pool: pool.phases.add(0), "phases"),
    ],
)
def test_an_audit_finds_what_is_counted_wrongly(damage, told):
    pool = RadixAllocator(40)
    one = admitted(pool, sequence(0, 8))
    pool.audit([one])
    damage(pool)
    with pytest.raises(CheckError, match=told):
        pool.audit([one])


@pytest.mark.parametrize("value", [{"page_size": 0}, {"pool_slots": 3}, {"eviction": "fancy"}])
def test_a_pool_that_cannot_be_is_refused(value):
    with pytest.raises(ValueError, match=next(iter(value))):
        RadixAllocator(**{"pool_slots": 40, "page_size": 4} | value)
