"""The buddy system: blocks of power-of-two length at aligned addresses, halved when taken, merged when free."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvsim.errors import CheckError
from kvsim.memory.addresses import BuddySpace


def test_a_fresh_power_of_two_is_one_block():
    space = BuddySpace(64)
    assert (space.free, space.largest, space.most, space.rounding, space.holes) == (64, 64, 64, 0, [(0, 64)])


@pytest.mark.parametrize(
    ("size", "blocks"),
    [
        (1, [(0, 1)]),
        (100, [(0, 64), (64, 32), (96, 4)]),
        # The pool of PagedAttention's figure 2: seven regions of 2,048 and a rest that holds none.
        (15728, [
            (0, 8192), (8192, 4096), (12288, 2048), (14336, 1024), (15360, 256), (15616, 64), (15680, 32), (15712, 16),
        ]),
    ],
)  # fmt: skip
def test_any_other_size_is_the_greedy_sum_of_powers_of_two_from_address_0(size, blocks):
    space = BuddySpace(size)
    assert space.holes == blocks
    assert (space.free, space.most) == (size, blocks[0][1])


def test_seven_regions_of_the_models_limit_fit_the_pool_of_the_paper_and_leave_885_percent():
    space = BuddySpace(15728)
    starts = [space.take(2048) for _ in range(8)]
    assert starts == [12288, 8192, 10240, 0, 2048, 4096, 6144, None]
    assert space.free / 15728 == pytest.approx(0.0885, abs=5e-5)


@pytest.mark.parametrize(("length", "room"), [(1, 1), (2, 2), (3, 4), (4, 4), (5, 8), (33, 64)])
def test_a_region_takes_the_next_power_of_two_and_the_rest_is_rounding(length, room):
    space = BuddySpace(64)
    assert space.room(length) == room
    assert space.take(length) == 0
    assert (space.free, space.rounding) == (64 - room, room - length)


def test_the_lowest_block_of_the_smallest_sufficient_order_is_taken():
    space = BuddySpace(32)
    assert [space.take(4) for _ in range(5)] == [0, 4, 8, 12, 16]  # leaves 20..23 and 24..31
    space.give(4, 4)
    assert space.take(3) == 4  # of 4..7 and 20..23 the lower
    assert space.take(3) == 20  # not out of the block of eight
    assert space.take(3) == 24
    assert space.holes == [(28, 4)]


def test_free_buddies_merge_at_once_and_neighbours_that_are_none_never_do():
    space = BuddySpace(32)
    assert [space.take(8) for _ in range(4)] == [0, 8, 16, 24]
    space.give(8, 8)
    space.give(16, 8)
    assert space.holes == [(8, 8), (16, 8)]  # side by side, of different parents
    assert space.take(16) is None
    space.give(24, 8)
    assert space.holes == [(8, 8), (16, 16)]
    space.give(0, 8)
    assert space.holes == [(0, 32)]


def test_a_region_grows_within_its_own_block_free_of_charge():
    space = BuddySpace(16)
    assert [space.take(5), space.take(8)] == [0, 8]  # full, with three slots of rounding
    assert space.extend(0, 5, 8)
    assert (space.free, space.rounding) == (0, 0)
    assert not space.extend(0, 8, 9)


def test_the_lower_buddy_grows_into_the_free_upper_ones_and_the_upper_buddy_into_nothing():
    space = BuddySpace(32)
    assert [space.take(4), space.take(4)] == [0, 4]
    assert not space.extend(4, 4, 5)  # 8..15 is free, but 4..7 is the upper half of 0..7
    assert not space.extend(0, 4, 5)
    space.give(4, 4)
    assert space.extend(0, 4, 9)  # through 4..7 and 8..15 at once
    assert (space.free, space.rounding, space.holes) == (16, 7, [(16, 16)])
    assert not space.extend(0, 9, 33)
    space.give(0, 9)
    assert (space.free, space.rounding, space.holes) == (32, 0, [(0, 32)])


def test_an_upper_buddy_does_not_grow_into_a_free_neighbour_that_is_not_its_buddy():
    space = BuddySpace(32)
    assert [space.take(4) for _ in range(4)] == [0, 4, 8, 12]
    space.give(8, 4)
    assert not space.extend(4, 4, 8)  # 8..11 is free, but 4..11 is no block
    assert space.holes == [(8, 4), (16, 16)]


def test_nothing_grows_across_the_blocks_that_make_up_the_space():
    space = BuddySpace(24)  # 0..15 and 16..23
    assert space.take(16) == 0
    assert not space.extend(0, 16, 17)
    assert space.take(9) is None


@pytest.mark.parametrize(("start", "length"), [(4, 4), (4, 2), (0, 8), (16, 16), (24, 8), (26, 2)])
def test_giving_back_a_slot_that_is_free_is_a_double_free_and_changes_nothing(start, length):
    space = BuddySpace(32)
    assert [space.take(4) for _ in range(5)] == [0, 4, 8, 12, 16]
    space.give(4, 4)
    before = space.free, space.rounding, space.holes
    with pytest.raises(CheckError, match="double free"):
        space.give(start, length)
    assert (space.free, space.rounding, space.holes) == before


def test_restore_undoes_everything_since_the_snapshot():
    space = BuddySpace(32)
    space.take(5)
    before = space.snapshot()
    space.take(3)
    space.extend(0, 5, 12)
    space.restore(before)
    assert (space.free, space.rounding, space.holes) == (24, 3, [(8, 8), (16, 16)])
    assert space.take(3) == 8


class Bitmap:
    """One letter a slot; a free block is the longest aligned free run that lies within a block of the greedy sum."""

    def __init__(self, size: int) -> None:
        self.cells = "." * size
        self.roots, start = [], 0
        while start < size:
            length = 1
            while start + 2 * length <= size:
                length *= 2
            self.roots.append((start, length))
            start += length

    def put(self, start: int, room: int, letter: str) -> None:
        self.cells = self.cells[:start] + letter * room + self.cells[start + room :]

    def is_free(self, start: int, length: int) -> bool:
        return self.cells[start : start + length] == "." * length

    def blocks(self) -> list[tuple[int, int]]:
        """By halving every root until each piece is all free, all taken or one slot."""
        pieces, free = list(self.roots), []
        while pieces:
            start, length = pieces.pop(0)
            if self.is_free(start, length):
                free.append((start, length))
            elif "." in self.cells[start : start + length]:
                pieces[:0] = [(start, length // 2), (start + length // 2, length // 2)]
        return free


verbs = st.one_of(
    st.tuples(st.just("take"), st.one_of(st.integers(1, 20), st.integers(1, 4)), st.just(0)),
    st.tuples(st.just("extend"), st.integers(1, 12), st.integers(0, 39)),
    st.tuples(st.just("give"), st.just(0), st.integers(0, 39)),
)


@settings(max_examples=300)
@given(st.lists(verbs, max_size=60), st.integers(1, 70))
def test_the_space_is_a_bitmap_and_free_buddies_are_always_merged(calls, size):
    space, bitmap = BuddySpace(size), Bitmap(size)
    regions: dict[int, int] = {}

    def room(length: int) -> int:
        return next(power for power in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024) if power >= length)

    for verb, length, pick in calls:
        if verb == "take":
            fitting = [block for block in bitmap.blocks() if block[1] >= room(length)]
            start = min(fitting, key=lambda block: (block[1], block[0]), default=(None, 0))[0]
            assert space.take(length) == start
            if start is not None:
                bitmap.put(start, room(length), "x")
                regions[start] = length
        elif regions:
            start = sorted(regions)[pick % len(regions)]
            if verb == "give":
                space.give(start, regions[start])
                bitmap.put(start, room(regions.pop(start)), ".")
            else:
                longer = regions[start] + length
                old, new = room(regions[start]), room(longer)
                within = any(at <= start and start + new <= at + root for at, root in bitmap.roots)
                fits = new == old or (start % new == 0 and within and bitmap.is_free(start + old, new - old))
                assert space.extend(start, regions[start], longer) == fits
                if fits:
                    bitmap.put(start, new, "x")
                    regions[start] = longer
        # The bitmap's free blocks are the longest there can be: buddies are merged completely.
        assert space.holes == bitmap.blocks()
        assert space.free == bitmap.cells.count(".")
        assert space.rounding == bitmap.cells.count("x") - sum(regions.values())
        assert space.largest == max((block for _, block in bitmap.blocks()), default=0)
        assert space.below(5) == sum(block for _, block in bitmap.blocks() if block < 5)
        for start, length in regions.items():
            assert start % room(length) == 0
