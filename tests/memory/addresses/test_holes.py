"""An address space of holes: each fit finds its hole, what is taken is not free, neighbours merge, nothing twice."""

from itertools import groupby

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvsim.errors import CheckError
from kvsim.memory.addresses import FITS, AddressSpace


def space_with_holes(size: int, holes: list[tuple[int, int]], **options) -> AddressSpace:
    """All taken but `holes`, each (start, length)."""
    space = AddressSpace(size, **options)
    assert space.take(size) == 0
    for start, length in holes:
        space.give(start, length)
    return space


def test_a_fresh_space_is_one_hole():
    space = AddressSpace(100)
    assert (space.free, space.largest, space.most, space.rounding, space.holes) == (100, 100, 100, 0, [(0, 100)])


@pytest.mark.parametrize(
    ("fit", "start"),
    [("first", 30), ("best", 60), ("worst", 80)],
)
def test_each_fit_takes_its_own_hole_among_those_that_are_large_enough(fit, start):
    space = space_with_holes(120, [(10, 5), (30, 15), (60, 8), (80, 20)], fit=fit)
    assert space.take(8) == start
    assert space.free == 40


@pytest.mark.parametrize("fit", ["first", "best", "worst"])
def test_of_equal_holes_the_lowest_is_taken(fit):
    space = space_with_holes(100, [(10, 4), (30, 8), (60, 8)], fit=fit)
    assert space.take(6) == 30


def test_next_fit_goes_on_from_where_the_last_region_ended_and_round_at_the_end():
    space = space_with_holes(100, [(0, 10), (30, 10), (60, 10), (90, 10)], fit="next")
    # The last region taken was the whole space, which ended at 100: round to the beginning.
    assert space.take(4) == 0
    assert space.take(8) == 30  # the 6 slots left behind the first one are too few
    assert space.take(8) == 60
    assert space.take(6) == 90
    assert space.take(6) == 4


def test_next_fit_begins_with_the_hole_in_which_its_place_lies():
    space = AddressSpace(100, fit="next")
    assert [space.take(10) for _ in range(3)] == [0, 10, 20]
    space.give(0, 10)
    space.give(20, 10)
    # It stands at 30, now inside the hole 20..99.
    assert space.take(5) == 20


def test_next_fit_stands_at_the_end_of_its_last_region_even_when_that_has_been_given_back():
    space = AddressSpace(40, fit="next")
    assert [space.take(10) for _ in range(4)] == [0, 10, 20, 30]
    space.give(0, 10)
    space.give(20, 10)
    assert space.take(10) == 0  # round, for it stands at the end: it stands at 10 now
    space.give(0, 10)
    assert space.take(10) == 20


def test_a_hole_taken_to_the_last_slot_is_gone():
    space = space_with_holes(100, [(10, 5), (30, 20)])
    assert space.take(5) == 10
    assert space.holes == [(30, 20)]


@pytest.mark.parametrize("fit", FITS)
def test_what_fits_in_no_hole_is_not_given_although_enough_is_free_in_all(fit):
    space = space_with_holes(100, [(10, 5), (30, 5)], fit=fit)
    assert space.free == 10
    assert space.take(6) is None
    assert space.holes == [(10, 5), (30, 5)]


def test_a_region_is_extended_only_where_the_hole_right_behind_it_is_large_enough():
    space = space_with_holes(100, [(10, 5), (30, 20)])
    assert not space.extend(5, 5, 11)  # 10..14 are five slots
    assert not space.extend(20, 5, 6)  # 25 is taken
    assert not space.extend(90, 10, 11)  # the end of the space
    assert (space.free, space.holes) == (25, [(10, 5), (30, 20)])
    assert space.extend(5, 5, 8)
    assert space.extend(15, 15, 35)
    assert (space.free, space.holes) == (2, [(13, 2)])


def test_regions_are_rounded_up_to_the_unit_and_the_rest_is_neither_free_nor_anybodys():
    space = AddressSpace(20, unit=8)
    assert (space.most, space.room(1), space.room(8), space.room(9)) == (16, 8, 8, 16)
    assert [space.take(5), space.take(8), space.take(1)] == [0, 8, None]
    assert (space.free, space.rounding, space.holes) == (4, 3, [(16, 4)])
    # Within its own rounding a region grows whatever lies behind it.
    assert space.extend(0, 5, 7)
    assert (space.free, space.rounding) == (4, 1)
    assert not space.extend(0, 7, 9)
    space.give(8, 8)
    assert space.extend(0, 7, 9)
    assert (space.free, space.rounding, space.holes) == (4, 7, [(16, 4)])
    space.give(0, 9)
    assert (space.free, space.rounding, space.holes) == (20, 0, [(0, 20)])


@pytest.mark.parametrize(
    ("given_back", "holes"),
    [
        ((20, 5), [(10, 5), (20, 5), (30, 5)]),
        ((15, 5), [(10, 10), (30, 5)]),
        ((25, 5), [(10, 5), (25, 10)]),
        ((15, 15), [(10, 25)]),
    ],
    ids=["alone", "with the hole below", "with the hole above", "with both"],
)
def test_a_region_given_back_merges_with_its_neighbours(given_back, holes):
    space = space_with_holes(50, [(10, 5), (30, 5)])
    space.give(*given_back)
    assert space.holes == holes
    assert space.free == sum(length for _, length in holes)


@pytest.mark.parametrize("region", [(10, 5), (8, 3), (14, 2), (12, 1), (5, 20), (29, 2), (34, 1)])
def test_giving_back_a_slot_that_is_free_is_a_double_free_and_changes_nothing(region):
    space = space_with_holes(50, [(10, 5), (30, 5)])
    with pytest.raises(CheckError, match="double free"):
        space.give(*region)
    assert (space.free, space.holes) == (10, [(10, 5), (30, 5)])


def test_free_slots_below_a_need_are_those_in_holes_too_small_for_it():
    space = space_with_holes(100, [(0, 3), (10, 7), (50, 8)])
    assert [space.below(need) for need in (3, 4, 8, 9)] == [0, 3, 10, 18]


def test_restore_undoes_everything_since_the_snapshot():
    space = space_with_holes(100, [(12, 4), (32, 20)], fit="next", unit=4)
    space.take(5)  # 12..15 is too short: 32..39
    before = space.snapshot()
    space.take(9)
    space.extend(8, 4, 6)
    space.give(80, 4)
    space.restore(before)
    assert (space.free, space.rounding, space.holes) == (16, 3, [(12, 4), (40, 12)])
    assert space.take(4) == 40  # it goes on from 40, as if nothing had been


@pytest.mark.parametrize(
    ("options", "message"),
    [({"fit": "buddy"}, "fit is buddy; it must be one of first, best"), ({"unit": 0}, "unit is 0")],
)
def test_options_that_mean_nothing_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        AddressSpace(10, **options)


class Bitmap:
    """The same space as one letter a slot, and every search by trying out all addresses."""

    def __init__(self, size: int, unit: int) -> None:
        self.unit = unit
        self.cells = "." * size
        self.rover = 0

    def put(self, start: int, room: int, letter: str) -> None:
        self.cells = self.cells[:start] + letter * room + self.cells[start + room :]

    def holes(self) -> list[tuple[int, int]]:
        runs, at = [], 0
        for letter, cells in groupby(self.cells):
            length = len(list(cells))
            runs += [(at, length)] if letter == "." else []
            at += length
        return runs

    def start_of(self, fit: str, room: int) -> int | None:
        fitting = [hole for hole in self.holes() if hole[1] >= room]
        if not fitting:
            return None
        if fit == "next":
            later = [hole for hole in fitting if sum(hole) > self.rover]
            return (later or fitting)[0][0]
        if fit == "best":
            smallest = min(length for _, length in fitting)
            fitting = [hole for hole in fitting if hole[1] == smallest]
        if fit == "worst":
            largest = max(length for _, length in fitting)
            fitting = [hole for hole in fitting if hole[1] == largest]
        return fitting[0][0]


verbs = st.one_of(
    st.tuples(st.just("take"), st.one_of(st.integers(1, 12), st.integers(1, 4)), st.just(0)),
    st.tuples(st.just("extend"), st.integers(1, 12), st.integers(0, 39)),
    st.tuples(st.just("give"), st.just(0), st.integers(0, 39)),
    st.tuples(st.just("give again"), st.integers(1, 8), st.integers(0, 39)),
)


@pytest.mark.parametrize("fit", FITS)
@settings(max_examples=300)
@given(st.lists(verbs, max_size=60), st.sampled_from([1, 1, 3]))
def test_the_space_is_a_bitmap(fit, calls, unit):
    size = 40
    space, bitmap = AddressSpace(size, fit=fit, unit=unit), Bitmap(size, unit)
    regions: dict[int, int] = {}

    def room(length: int) -> int:
        return next(room for room in range(0, 2 * size, unit) if room >= length)

    for verb, length, pick in calls:
        if verb == "take":
            start = bitmap.start_of(fit, room(length))
            assert space.take(length) == start
            if start is not None:
                bitmap.put(start, room(length), "x")
                bitmap.rover = start + room(length)
                regions[start] = length
        elif verb == "give again":
            cells = bitmap.cells[pick : pick + room(length)]
            if "." in cells:
                with pytest.raises(CheckError):
                    space.give(pick, length)
        elif regions:
            start = sorted(regions)[pick % len(regions)]
            if verb == "give":
                space.give(start, regions[start])
                bitmap.put(start, room(regions.pop(start)), ".")
            else:
                longer, end = regions[start] + length, start + room(regions[start])
                behind = bitmap.cells[end : start + room(longer)]
                fits = start + room(longer) <= size and set(behind) <= {"."}
                assert space.extend(start, regions[start], longer) == fits
                if fits:
                    bitmap.put(start, room(longer), "x")
                    regions[start] = longer
        assert space.holes == bitmap.holes()
        assert space.free == bitmap.cells.count(".")
        assert space.rounding == bitmap.cells.count("x") - sum(regions.values())
        assert space.largest == max((hole for _, hole in bitmap.holes()), default=0)
        assert space.below(5) == sum(hole for _, hole in bitmap.holes() if hole < 5)
