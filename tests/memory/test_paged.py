"""`paged`, told by hand: a block is taken when a token needs it and comes back when a request leaves."""

import pytest

from kvsim.errors import CheckError
from kvsim.memory.paged import PagedAllocator
from kvsim.step import Ask, Chunk, Grant, PoolUse, Short
from tests.memory.stories import decode, decoding, sequence


@pytest.mark.parametrize(("tokens", "blocks"), [(1, 1), (15, 1), (16, 1), (17, 2), (32, 2), (33, 3), (160, 10)])
def test_a_prompt_takes_its_length_over_the_block_size_rounded_up(tokens, blocks):
    allocator = PagedAllocator(16 * 20)
    [one] = decoding(allocator, tokens)
    assert allocator.free_blocks == 20 - blocks
    assert allocator.owned(one) == allocator.capacity(tokens) == 16 * blocks
    assert allocator.usage() == PoolUse(tokens, 16 * blocks - tokens, 0, 0, 0, 16 * (20 - blocks), 16 * (20 - blocks))


def test_a_decoding_request_takes_a_block_with_the_first_token_that_needs_it():
    allocator = PagedAllocator(16 * 4)
    [one] = decoding(allocator, 14)  # 14 written; tokens 15 and 16 still fit in the first block
    owned = []
    for _ in range(4):
        decode(allocator)
        owned.append(allocator.owned(one))
    assert owned == [16, 16, 32, 32]
    assert allocator.usage().used == 18


def test_with_blocks_of_one_slot_nothing_is_unwritten_after_a_step():
    allocator = PagedAllocator(40, block_size=1)
    decoding(allocator, 7)
    decode(allocator)
    assert allocator.usage() == PoolUse(8, 0, 0, 0, 0, 32, 32)


def test_the_pool_is_whole_blocks():
    allocator = PagedAllocator(16 * 3 + 15)
    assert (allocator.blocks, allocator.pool_slots) == (3, 48)


def test_a_slot_is_used_only_when_the_step_that_writes_it_is_over():
    allocator = PagedAllocator(64)
    one = sequence(0, 20)
    allocator.acquire([Ask(one, 20, admit=True, alone=True)])
    assert allocator.usage() == PoolUse(0, 32, 0, 0, 0, 32, 32)
    allocator.settle([Chunk(one, 20, 0)])
    assert allocator.usage() == PoolUse(20, 12, 0, 0, 0, 32, 32)


def test_a_prompt_in_chunks_takes_the_blocks_of_each_chunk_as_it_comes():
    allocator = PagedAllocator(16 * 4)
    one = sequence(0, 40)
    blocks = []
    for start in (0, 10, 20, 30):
        allocator.acquire([Ask(one, start + 10, admit=start == 0, alone=True)])
        allocator.settle([Chunk(one, 10, start)])
        blocks.append(allocator.owned(one) // 16)
    assert blocks == [1, 2, 2, 3]


def test_several_asks_are_met_together_or_not_at_all():
    allocator = PagedAllocator(16 * 4)
    one, two = sequence(0, 32), sequence(1, 48)
    got = allocator.acquire([Ask(one, 32), Ask(two, 48)])
    assert got == Short("capacity", need_slots=48, free_slots=64, largest_hole_slots=64)
    assert (allocator.free_blocks, allocator.owned(one), allocator.owned(two)) == (4, 0, 0)
    assert allocator.acquire([Ask(one, 32), Ask(two, 32)]) == Grant()
    assert allocator.free_blocks == 0


def test_a_batch_that_cannot_grow_whole_does_not_grow_at_all():
    allocator = PagedAllocator(16 * 5)
    one, two = decoding(allocator, 32, 32)  # both need a block now, one is free
    assert decode(allocator) == Short("capacity", 32, 16, 16)
    assert (allocator.owned(one), allocator.owned(two), allocator.usage().used) == (32, 32, 64)


def test_one_of_a_batch_can_take_its_block_by_itself_and_does_not_ask_again():
    allocator = PagedAllocator(16 * 5)
    one, two = decoding(allocator, 32, 32)
    assert allocator.acquire([Ask(one, 33)]) == Grant()
    assert (allocator.owned(one), allocator.free_blocks) == (48, 0)
    allocator.release(two)
    assert allocator.free_blocks == 2
    allocator.settle([])
    assert allocator.usage() == PoolUse(33, 15, 0, 0, 0, 32, 32)
    allocator.audit([one])
    assert decode(allocator) == Grant()
    assert allocator.free_blocks == 2


def test_a_finished_request_returns_every_block():
    allocator = PagedAllocator(16 * 8)
    one, two = decoding(allocator, 20, 33)
    for _ in range(16):
        decode(allocator)
    allocator.release(one)  # 36 written: 3 blocks; the other has 49 written: 4 blocks
    assert (one.written, allocator.free_blocks) == (36, 4)
    allocator.audit([two])
    allocator.release(two)
    assert allocator.usage() == PoolUse(0, 0, 0, 0, 0, 128, 128)
    allocator.audit([])


def test_blocks_are_given_back_once():
    allocator = PagedAllocator(64)
    [one] = decoding(allocator, 20)
    allocator.release(one)
    with pytest.raises(CheckError, match="double free"):
        allocator.release(one)


def test_an_admission_leaves_the_watermark_free_while_anything_runs():
    allocator = PagedAllocator(16 * 10, watermark=0.25)  # int(2.5) = 2 blocks
    assert allocator.watermark_blocks == 2
    decoding(allocator, 16 * 5)
    newcomer = sequence(1, 16 * 4)
    assert allocator.acquire([Ask(newcomer, 64, admit=True)]) == Short("capacity", 16 * 6, 16 * 5, 16 * 5)
    assert allocator.acquire([Ask(newcomer, 48, admit=True)]) == Grant()
    assert allocator.free_blocks == 2


def test_the_watermark_binds_neither_a_lone_request_nor_one_that_runs_already():
    allocator = PagedAllocator(16 * 4, watermark=0.5)
    one = sequence(0, 64)
    assert allocator.acquire([Ask(one, 48, admit=True, alone=True)]) == Grant()
    allocator.settle([Chunk(one, 48, 0)])
    assert allocator.acquire([Ask(one, 64)]) == Grant()
    assert allocator.free_blocks == 0


def test_the_gate_asks_that_the_whole_prompt_could_be_had_but_only_the_chunk_is_taken():
    allocator = PagedAllocator(16 * 4)
    one = sequence(0, 64)
    assert allocator.acquire([Ask(one, 16, admit=True, gate=65)]) == Short("capacity", 80, 64, 64)
    assert allocator.acquire([Ask(one, 16, admit=True, gate=64)]) == Grant()
    assert allocator.free_blocks == 3


def test_no_slot_of_a_paged_pool_is_lost_to_shape():
    allocator = PagedAllocator(16 * 4)
    decoding(allocator, 20)
    assert not allocator.has_holes
    assert allocator.external(64) == 0


def test_a_leap_ends_where_the_pool_does():
    allocator = PagedAllocator(16 * 4)
    decoding(allocator, 14)  # its own block holds 2 more, three free ones 48
    assert allocator.leap(1000).steps == 2 + 48
    assert allocator.leap(7).steps == 7


def test_a_leap_of_two_requests_shares_the_free_blocks_in_the_order_they_are_needed():
    allocator = PagedAllocator(16 * 5)
    decoding(allocator, 14, 16)
    # Three free blocks: the second request takes one at once (step 0), the first at step 2, the second again
    # at step 16; the first would need the fourth at step 18.
    leap = allocator.leap(1000)
    assert leap.steps == 18
    assert [leap.use_at(step).free for step in (0, 1, 2, 15, 16, 17)] == [32, 32, 16, 16, 0, 0]
    leap.apply(18)
    assert allocator.usage() == PoolUse(14 + 16 + 36, 80 - 66, 0, 0, 0, 0, 0)


@pytest.mark.parametrize("tokens", [1, 15, 16, 17, 32, 33, 100])
def test_the_last_growth_is_asked_for_when_the_blocks_before_are_full(tokens):
    allocator = PagedAllocator(16 * 10)
    written = allocator.last_growth(tokens)
    assert allocator.capacity(max(written, 1)) < allocator.capacity(tokens) or written == 0
    assert allocator.capacity(written + 1) == allocator.capacity(tokens)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"block_size": 0}, "block_size is 0"),
        ({"block_size": 257}, "block_size is 257"),
        ({"pool_slots": 15}, "pool_slots is 15"),
        ({"watermark": 1.0}, r"watermark is 1\.0"),
        ({"watermark": -0.1}, r"watermark is -0\.1"),
    ],
)
def test_impossible_settings_are_refused_by_name(arguments, message):
    with pytest.raises(ValueError, match=message):
        PagedAllocator(**{"pool_slots": 64, **arguments})
