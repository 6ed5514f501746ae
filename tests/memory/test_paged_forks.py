"""Forks of `paged`, told by hand: full blocks are held in common, and the last one is copied by all writers but one."""

from fractions import Fraction

import pytest

from kvsim.memory.contiguous import ContiguousAllocator
from kvsim.memory.paged import PagedAllocator
from kvsim.request import Sequence
from kvsim.step import Ask, Chunk, Grant, PoolUse, Short
from tests.memory.stories import decode, decoding, sequence


def samples(allocator: PagedAllocator, prompt: int, count: int) -> list[Sequence]:
    """One request with `count` samples that fork off at the end of its prompt; all of them decode from there."""
    first = sequence(0, prompt)
    assert isinstance(allocator.acquire([Ask(first, prompt, admit=True, alone=True)]), Grant)
    allocator.settle([Chunk(first, prompt, 0)])
    first.tokens += 1
    family = [first, *(sequence(number, prompt) for number in range(1, count))]
    for child in family[1:]:
        allocator.fork(first, child)
    for member in family:
        allocator.begin_decode(member)
    return family


def test_samples_hold_the_prompt_in_common_and_its_slots_count_once():
    allocator = PagedAllocator(40, block_size=4)
    family = samples(allocator, 8, 3)
    assert allocator.usage() == PoolUse(8, 0, 0, 0, 0, 32, 32)
    assert [allocator.owned(one) for one in family] == [8, 8, 8]
    assert allocator.shared_slots == 16
    assert decode(allocator) == Grant()  # the prompt ends with its second block: nothing is copied
    assert allocator.usage() == PoolUse(8 + 3, 9, 0, 0, 0, 20, 20)
    allocator.audit(family)


def test_a_fork_says_how_many_tokens_stay_in_common():
    allocator = PagedAllocator(40, block_size=4)
    [one] = decoding(allocator, 10)
    assert allocator.fork(one, sequence(1, 10)) == 8


def test_the_last_block_of_a_prompt_is_copied_at_the_first_write_by_all_samples_but_the_last():
    allocator = PagedAllocator(40, block_size=4)
    family = samples(allocator, 6, 3)
    assert allocator.leap(10).steps == 0  # a step that copies is a step of its own
    assert allocator.acquire([], decodes=True) == Grant(copied_slots=2 * 2)
    # Two of the three have a copy of the second block with its two tokens, which is `moving` until the step is over.
    assert allocator.usage() == PoolUse(6, 6, 0, 4, 0, 40 - 16, 40 - 16)
    assert allocator.shared_slots == 2 * 4
    allocator.settle([])
    assert allocator.usage() == PoolUse(4 + 3 * 3, 3, 0, 0, 0, 24, 24)
    assert decode(allocator) == Grant()
    allocator.audit(family)


def test_a_copy_needs_a_block_of_its_own():
    allocator = PagedAllocator(12, block_size=4)
    one, two, three = samples(allocator, 6, 3)
    assert decode(allocator) == Short("capacity", 8, 4, 4)
    assert allocator.acquire([Ask(one, 7)]) == Grant(2)
    assert allocator.acquire([Ask(two, 7)]) == Short("capacity", 4, 0, 0)
    allocator.release(three)
    assert allocator.acquire([Ask(two, 7)]) == Grant()  # it is the last to hold that block
    allocator.settle([])
    assert allocator.usage() == PoolUse(4 + 3 + 3, 2, 0, 0, 0, 0, 0)
    allocator.audit([one, two])


def test_of_two_writers_that_ask_in_one_call_one_copies():
    allocator = PagedAllocator(40, block_size=4)
    family = samples(allocator, 6, 2)
    assert allocator.acquire([Ask(one, 7) for one in family]) == Grant(2)
    assert allocator.usage().free == 40 - 3 * 4
    allocator.settle([])
    allocator.audit(family)


def test_who_leaves_with_a_copy_on_the_way_takes_the_copy_along():
    allocator = PagedAllocator(40, block_size=4)
    one, two = samples(allocator, 6, 2)
    assert allocator.acquire([Ask(one, 7)]) == Grant(2)
    allocator.release(one)
    assert allocator.usage() == PoolUse(6, 2, 0, 0, 0, 32, 32)
    assert allocator.acquire([Ask(two, 7)]) == Grant()
    allocator.settle([])
    allocator.audit([two])


def test_beams_that_are_dropped_and_forked_again_give_back_what_nobody_else_holds():
    allocator = PagedAllocator(80, block_size=4)
    one, two = samples(allocator, 8, 2)
    for _ in range(5):
        decode(allocator)  # 13 tokens each: two blocks in common, two of their own
    assert allocator.free_blocks == 20 - 2 - 4
    allocator.release(two)
    assert allocator.free_blocks == 20 - 4
    assert allocator.fork(one, two) == 12  # in place of the beam that was dropped
    assert (allocator.decodes.written_of(two), two.decoding) == (13, True)
    assert decode(allocator) == Grant(1)
    allocator.release(one)
    assert allocator.free_blocks == 20 - 4
    allocator.audit([two])
    allocator.release(two)
    assert allocator.usage() == PoolUse(0, 0, 0, 0, 0, 80, 80)


def test_a_stalled_step_leaves_the_copies_due():
    allocator = PagedAllocator(40, block_size=4)
    family = samples(allocator, 6, 2)
    newcomer = sequence(9, 3)
    allocator.acquire([Ask(newcomer, 3, admit=True)])
    allocator.settle([Chunk(newcomer, 3, 0)], stalled=True)
    assert [allocator.decodes.written_of(one) for one in family] == [6, 6]
    assert decode(allocator) == Grant(2)


@pytest.mark.parametrize("block_size", [1, 16, 256])
@pytest.mark.parametrize("count", [2, 4, 6])
@pytest.mark.parametrize(("prompt_blocks", "output_blocks"), [(1, 1), (3, 1), (2, 5)])
def test_parallel_sampling_saves_the_prompts_share_for_all_samples_but_one(
    block_size, count, prompt_blocks, output_blocks
):
    """s (n - 1) / n of the blocks, s the prompt's share: exactly where prompts and outputs are whole blocks."""
    prompt, output = prompt_blocks * block_size, output_blocks * block_size
    pool = count * (prompt + output)
    shared, apart = PagedAllocator(pool, block_size=block_size), PagedAllocator(pool, block_size=block_size)
    samples(shared, prompt, count)
    decoding(apart, *[prompt] * count)
    for _ in range(output):
        assert decode(shared) == decode(apart) == Grant()
    with_sharing, without = shared.blocks - shared.free_blocks, apart.blocks - apart.free_blocks
    share = Fraction(prompt, prompt + output)
    assert 1 - Fraction(with_sharing, without) == share * (count - 1) / count
    assert shared.shared_slots == (without - with_sharing) * block_size
    assert shared.upkeep.copies == 0


def test_an_allocator_that_cannot_share_refuses_to_fork_by_name():
    allocator = ContiguousAllocator(40, chunk=4)
    [one] = decoding(allocator, 6)
    with pytest.raises(NotImplementedError, match="contiguous cannot share slots"):
        allocator.fork(one, sequence(1, 6))
