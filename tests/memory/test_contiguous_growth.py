"""How a region grows, told by hand: doubling, token by token, by concatenation, and in a buddy's block."""

from functools import partial

import pytest

from kvsim.memory.contiguous import ContiguousAllocator
from kvsim.request import Sequence
from kvsim.step import Ask, Grant, PoolUse, Short
from tests.memory import stories

decoding = partial(stories.decoding, admit=True, granted=Grant())


@pytest.mark.parametrize(
    ("growth", "capacities", "last_growths"),
    [
        ("chunk", [4, 4, 4, 4, 8, 8, 8, 8, 12], [0, 0, 0, 0, 4, 4, 4, 4, 8]),
        ("double", [1, 2, 4, 4, 8, 8, 8, 8, 16], [0, 1, 2, 2, 4, 4, 4, 4, 8]),
        ("exact", [1, 2, 3, 4, 5, 6, 7, 8, 9], [0, 1, 2, 3, 4, 5, 6, 7, 8]),
        ("cat", [1, 2, 3, 4, 5, 6, 7, 8, 9], [0, 1, 2, 3, 4, 5, 6, 7, 8]),
    ],
)
def test_a_region_is_as_large_as_its_growth_says(growth, capacities, last_growths):
    allocator = ContiguousAllocator(100, growth=growth, chunk=4)
    assert [allocator.capacity(tokens) for tokens in range(1, 10)] == capacities
    assert [allocator.last_growth(tokens) for tokens in range(1, 10)] == last_growths


def test_double_grows_to_twice_its_size_when_it_is_full():
    allocator = ContiguousAllocator(40, growth="double")
    [one] = decoding(allocator, 3)
    sizes = []
    for _ in range(6):
        assert allocator.acquire([], decodes=True) == Grant()
        allocator.settle([])
        sizes.append(allocator.owned(one))
    assert sizes == [4, 8, 8, 8, 8, 16]


# Concatenation.


def test_cat_copies_the_whole_region_at_each_token_although_the_room_behind_it_is_free():
    allocator = ContiguousAllocator(40, growth="cat")
    [one] = decoding(allocator, 10)
    assert allocator.acquire([], decodes=True) == Grant(copied_slots=10)
    # The new region is 10..20, the old one 0..9 is held until the step is over.
    assert allocator.usage() == PoolUse(used=10, unwritten=1, dead=0, moving=10, cached=0, free=19, largest_hole=19)
    assert allocator.settle([])
    assert allocator.owned(one) == 11
    assert allocator.acquire([], decodes=True) == Grant(copied_slots=11)


def test_with_tensors_only_one_of_them_is_in_two_places_and_the_others_follow_into_what_it_leaves():
    allocator = ContiguousAllocator(14, growth="cat", tensors=4)
    [one] = decoding(allocator, 10)
    # 11 slots and a second place for one of four tensors, ceil(10 / 4) = 3, are all there is.
    assert allocator.acquire([], decodes=True) == Grant(copied_slots=10)
    assert allocator.usage() == PoolUse(used=10, unwritten=1, dead=0, moving=3, cached=0, free=0, largest_hole=0)
    allocator.audit([one])
    assert allocator.settle([])
    assert allocator.usage() == PoolUse(11, 0, 0, 0, 0, 3, 3)
    # 12 slots and 3 are one too many; what the request gives up itself, 11, counts as free.
    assert allocator.acquire([], decodes=True) == Short("capacity", 15, 14, 14)
    assert allocator.usage() == PoolUse(11, 0, 0, 0, 0, 3, 3)
    allocator.audit([one])


def test_requests_are_concatenated_one_after_another_so_that_the_largest_tensor_alone_counts():
    allocator = ContiguousAllocator(100, growth="cat", tensors=4)
    batch = decoding(allocator, 8, 20, 12)
    assert allocator.acquire([], decodes=True) == Grant(copied_slots=40)
    # Tensors of 2, 5 and 3 slots: the second place of the largest serves all three.
    assert allocator.usage() == PoolUse(40, 3, 0, 5, 0, 52, allocator.usage().largest_hole)
    allocator.audit(batch)


def test_regions_are_rounded_up_as_a_caching_allocator_does_and_the_rounding_belongs_to_nobody():
    allocator = ContiguousAllocator(40, growth="cat", rounding_slots=8)
    [one] = decoding(allocator, 10)
    assert allocator.owned(one) == 10
    assert allocator.usage() == PoolUse(10, 0, 0, 0, 0, free=24, largest_hole=24, rounding=6)
    assert [allocator.external(need) for need in (1, 24, 25)] == [6, 6, 6]  # one hole that all that is free is in
    assert allocator.acquire([], decodes=True) == Grant(copied_slots=10)
    # Two places of 16: 5 slots of rounding in the new one, 6 in the old.
    assert allocator.usage() == PoolUse(10, 1, 0, 10, 0, free=8, largest_hole=8, rounding=11)
    allocator.settle([])
    assert allocator.usage() == PoolUse(11, 0, 0, 0, 0, free=24, largest_hole=16, rounding=5)
    allocator.audit([one])


def test_a_region_that_is_rounded_up_grows_into_its_own_rounding_whatever_lies_behind_it():
    allocator = ContiguousAllocator(16, growth="exact", rounding_slots=8)
    one, two = decoding(allocator, 6, 8)
    assert allocator.acquire([Ask(one, 7)]) == Grant(0)
    assert allocator.usage() == PoolUse(14, 1, 0, 0, 0, free=0, largest_hole=0, rounding=1)
    assert allocator.acquire([Ask(two, 9)]) == Short("capacity", 16, 0, 0)


def test_no_more_can_ever_be_had_than_whole_multiples_of_the_rounding():
    allocator = ContiguousAllocator(20, growth="exact", rounding_slots=8)
    assert allocator.most_slots == 16
    newcomer = Sequence(0, 17, None, tokens=17)
    assert allocator.acquire([Ask(newcomer, 17, admit=True)]) == Short("capacity", 24, 20, 20)


# Buddies.


def test_what_a_buddys_block_has_beyond_the_ask_is_external_and_not_the_requests():
    allocator = ContiguousAllocator(64, fit="buddy", growth="exact")
    one, two = decoding(allocator, 5, 9)  # blocks 0..7 and 16..31
    assert (allocator.owned(one), allocator.owned(two)) == (5, 9)
    assert allocator.usage() == PoolUse(14, 0, 0, 0, 0, free=40, largest_hole=32, rounding=10)
    # Free blocks are 8..15 and 32..63; a need of 9 is one of 16, a need of 33 one of 64, more than all that is free.
    assert [allocator.external(need) for need in (8, 9, 32, 33)] == [10, 18, 18, 50]
    allocator.audit([one, two])


def test_in_its_own_block_a_region_grows_in_place_free_of_charge():
    allocator = ContiguousAllocator(16, fit="buddy", growth="exact")
    decoding(allocator, 6, 6)
    for rounding in (2, 0):
        assert allocator.acquire([], decodes=True) == Grant(0)
        assert allocator.usage().rounding == rounding
        assert not allocator.settle([])
    assert allocator.acquire([], decodes=True) == Short("capacity", 16, 0, 0)


def test_the_lower_buddy_grows_in_place_and_the_upper_one_moves():
    allocator = ContiguousAllocator(64, fit="buddy", growth="exact")
    lower, upper = decoding(allocator, 8, 8)  # 0..7 and 8..15
    assert allocator.acquire([Ask(upper, 9)]) == Grant(copied_slots=8)  # to 16..31
    allocator.settle([])
    allocator.release(upper)
    assert allocator.acquire([Ask(lower, 10)]) == Grant(0)  # 8..15 is free again
    assert allocator.usage() == PoolUse(9, 1, 0, 0, 0, free=48, largest_hole=32, rounding=6)
    allocator.audit([lower])


def test_a_region_is_never_longer_than_the_largest_block_of_the_pool():
    allocator = ContiguousAllocator(100, fit="buddy", growth="exact")
    assert allocator.most_slots == 64
    newcomer = Sequence(0, 65, None, tokens=65)
    assert allocator.acquire([Ask(newcomer, 65, admit=True)]) == Short("capacity", 128, 100, 64)
    longest, other = Sequence(1, 64, None, tokens=64), Sequence(2, 33, None, tokens=33)
    assert allocator.acquire([Ask(longest, 64, admit=True)]) == Grant()
    assert allocator.acquire([Ask(other, 33, admit=True)]) == Short("capacity", 64, 36, 32)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"growth": "tripple"}, "growth is tripple; it must be one of chunk, double, exact, cat"),
        ({"fit": "last"}, "fit is last; it must be one of first, best, worst, next"),
        ({"tensors": 2}, "tensors is 2; it must be at least 1, and 1 with any growth but cat"),
        ({"tensors": 0, "growth": "cat"}, "tensors is 0"),
        ({"rounding_slots": 0}, "rounding_slots is 0"),
        ({"rounding_slots": 2, "fit": "buddy"}, "fit buddy rounds up to powers of two itself"),
        ({"compaction": "always"}, "compaction is always; it must be one of never, on-failure"),
        ({"compaction": "on-failure", "fit": "buddy"}, "compaction is on-failure, but the blocks of fit buddy"),
    ],
)
def test_options_that_mean_nothing_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        ContiguousAllocator(100, **options)
