"""Block numbers as vLLM's free queue hands them out (rules 7 and 8 of its block pool, caching off)."""

from kvsim.engine.addresses.bands import FREE
from kvsim.engine.addresses.block_map import BlockMap


def test_a_new_pool_hands_out_blocks_in_order():
    blocks = BlockMap(4)
    blocks.grow(7, 2)
    blocks.grow(8, 1)
    assert blocks.tables == {7: [0, 1], 8: [2]}
    assert blocks.free == 1


def test_who_leaves_puts_its_blocks_at_the_head_the_last_of_its_table_first():
    blocks = BlockMap(6)
    blocks.grow(0, 3)
    blocks.grow(1, 1)
    blocks.release(0, blocks.tables.pop(0))
    blocks.grow(2, 5)
    assert blocks.tables[2] == [2, 1, 0, 4, 5]


def test_a_block_that_comes_free_and_is_taken_again_is_not_told_as_free():
    blocks = BlockMap(4)
    blocks.grow(0, 3)
    blocks.settle()
    blocks.release(0, blocks.tables.pop(0))
    blocks.grow(1, 1)
    assert blocks.loose() == [(0, FREE), (1, FREE)]
    assert blocks.fresh == {1: {0}}
    blocks.settle()
    assert blocks.loose() == []
    assert blocks.fresh == {}


def test_a_shared_block_counts_to_its_first_holder_and_then_to_the_next():
    blocks = BlockMap(8)
    blocks.grow(0, 2)
    blocks.fork(0, 10)
    blocks.fork(0, 20)
    assert [blocks.owner(block) for block in blocks.tables[20]] == [0, 0]
    blocks.settle()
    blocks.release(10, blocks.tables.pop(10))
    assert blocks.fresh == {}
    blocks.release(0, blocks.tables.pop(0))
    assert [blocks.owner(block) for block in blocks.tables[20]] == [20, 20]
    assert blocks.fresh == {20: {0, 1}}
    assert blocks.loose() == []
    blocks.release(20, blocks.tables.pop(20))
    assert blocks.loose() == [(0, FREE), (1, FREE)]


def test_whoever_writes_into_a_shared_last_block_gets_one_of_its_own_and_the_last_keeps_it():
    blocks = BlockMap(8)
    blocks.grow(0, 2)
    blocks.fork(0, 10)
    assert blocks.shares_last(0)
    blocks.copy_last(0)
    assert (blocks.tables[0], blocks.tables[10]) == ([0, 2], [0, 1])
    assert not blocks.shares_last(0)
    assert not blocks.shares_last(10)
    assert (blocks.owner(0), blocks.owner(1), blocks.owner(2)) == (0, 10, 0)
