"""The pool of blocks: who is referenced, who is cached, who is next."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kvsim.errors import CheckError
from kvsim.memory.prefix import BlockPool
from tests.memory.prefix.naive_pool import NaivePool

KEY, OTHER = (0, 1), (0, 2)


def stored(pool, *keys):
    """One block each, full."""
    blocks = pool.take(len(keys))
    for block, key in zip(blocks, keys, strict=True):
        pool.store(block, key)
    return blocks


def test_blocks_are_handed_out_in_the_order_of_their_ids_at_first():
    assert BlockPool(4).take(3) == [1, 2, 3]


def test_a_freed_block_stays_cached_until_it_is_handed_out_again():
    pool = BlockPool(2)
    pool.free(stored(pool, KEY))
    assert (pool.free_blocks, pool.cached_blocks, pool.contents, pool.find(KEY)) == (2, 1, 1, 1)
    pool.take(1)
    assert (pool.find(KEY), pool.evicted) == (1, 0)
    pool.take(1)
    assert (pool.find(KEY), pool.evicted, pool.contents, pool.cached_blocks) == (None, 1, 0, 0)


def test_blocks_of_unknown_content_are_reused_first_in_the_order_of_their_freeing():
    pool = BlockPool(5)
    full = stored(pool, KEY, OTHER)
    rest = pool.take(2)
    pool.free([*reversed(rest), *reversed(full)])
    assert pool.queue() == [4, 3, 5, 2, 1]


def test_before_may_2026_every_freed_block_went_to_the_end():
    pool = BlockPool(5, unknown_first=False)
    full = stored(pool, KEY, OTHER)
    rest = pool.take(2)
    pool.free([*reversed(rest), *reversed(full)])
    assert pool.queue() == [5, 4, 3, 2, 1]


def test_a_hit_takes_a_free_block_out_of_the_queue_and_shares_a_used_one():
    pool = BlockPool(3)
    [block] = stored(pool, KEY)
    pool.hit([block])
    assert (pool.references, pool.free_blocks) == (2, 2)
    pool.free([block])
    pool.free([block])
    assert pool.queue() == [2, 3, 1]
    pool.hit([block])
    assert pool.queue() == [2, 3]
    assert pool.cached_blocks == 0


def test_two_copies_are_kept_and_the_first_stored_is_found():
    pool = BlockPool(3)
    one, two = stored(pool, KEY, KEY)
    assert (pool.find(KEY), pool.contents, pool.stored) == (one, 1, 2)
    pool.free([one])
    pool.take(2)
    assert (pool.find(KEY), pool.evicted) == (two, 1)


def test_the_null_block_is_nobodys():
    pool = BlockPool(2)
    pool.hit([0, 0])
    pool.free([0])
    assert (pool.references, pool.free_blocks, pool.is_free(0)) == (0, 2, False)


@pytest.mark.parametrize("verb", [lambda p: p.free([1]), lambda p: p.take(3), lambda p: p.store(1, KEY)])
def test_what_cannot_be_is_refused(verb):
    with pytest.raises(CheckError):
        verb(BlockPool(2))


def test_a_block_is_stored_once():
    pool = BlockPool(2)
    [block] = stored(pool, KEY)
    with pytest.raises(CheckError, match="stored already"):
        pool.store(block, OTHER)


def test_an_audit_sees_a_reference_that_no_table_holds():
    pool = BlockPool(2)
    [block] = pool.take(1)
    pool.audit([[block, 0]])
    for tables in ([], [[block], [block]]):
        with pytest.raises(CheckError, match="reference counts differ"):
            pool.audit(tables)


class PoolMachine(RuleBasedStateMachine):
    """Any order of the verbs: the pool and the list model say the same, and nothing is lost or made."""

    blocks = 7
    unknown_first = True

    def __init__(self):
        super().__init__()
        self.pool = BlockPool(self.blocks, unknown_first=self.unknown_first)
        self.naive = NaivePool(self.blocks, self.unknown_first)
        self.tables = []
        self.most_references = 0

    @rule(count=st.integers(1, 4))
    def take(self, count):
        if count <= self.pool.free_blocks:
            self.tables.append(self.pool.take(count))
            assert self.tables[-1] == self.naive.take(count)

    @precondition(lambda self: self.tables)
    @rule(data=st.data(), key=st.tuples(st.just(0), st.integers(0, 3)))
    def store(self, data, key):
        block = data.draw(st.sampled_from(data.draw(st.sampled_from(self.tables))))
        if block not in self.naive.keys:
            self.pool.store(block, key)
            self.naive.store(block, key)

    @rule(key=st.tuples(st.just(0), st.integers(0, 3)))
    def hit(self, key):
        block = self.pool.find(key)
        assert block == self.naive.find(key)
        if block is not None:
            assert self.naive.keys[block] == key, "a hit never returns what was evicted"
            self.pool.hit([block])
            self.naive.hit(block)
            self.tables.append([block])

    @precondition(lambda self: self.tables)
    @rule(data=st.data())
    def free(self, data):
        table = self.tables.pop(data.draw(st.integers(0, len(self.tables) - 1)))
        self.pool.free(reversed(table))
        self.naive.free(reversed(table))

    @invariant()
    def agree(self):
        pool, naive = self.pool, self.naive
        assert pool.queue() == naive.queue
        assert pool.evicted == naive.evicted
        assert pool.contents == len(set(naive.keys.values()))
        assert pool.cached_blocks == sum(block in naive.keys for block in naive.queue)
        assert pool.references == sum(map(len, self.tables)) == sum(naive.references.values())
        self.most_references = max(self.most_references, pool.references)
        assert pool.most_references == self.most_references
        pool.audit(self.tables)


class OldPoolMachine(PoolMachine):
    unknown_first = False


TestPoolMachine = PoolMachine.TestCase
TestOldPoolMachine = OldPoolMachine.TestCase
for case in (TestPoolMachine, TestOldPoolMachine):
    case.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
del case
