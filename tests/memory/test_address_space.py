"""A real address space: what is taken is not free, neighbours merge, and nothing is given back twice."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvsim.errors import CheckError
from kvsim.memory.address_space import AddressSpace


def space_with_holes(size: int, holes: list[tuple[int, int]]) -> AddressSpace:
    """All taken but `holes`, each (start, length)."""
    space = AddressSpace(size)
    assert space.take_first(size) == 0
    for start, length in holes:
        space.give(start, length)
    return space


def test_a_fresh_space_is_one_hole():
    space = AddressSpace(100)
    assert (space.free, space.largest, space.holes) == (100, 100, [(0, 100)])


def test_first_fit_takes_the_lowest_hole_that_is_large_enough_not_the_best():
    space = space_with_holes(100, [(10, 5), (30, 20), (60, 8)])
    assert space.take_first(8) == 30
    assert space.holes == [(10, 5), (38, 12), (60, 8)]
    assert space.free == 25


def test_a_hole_taken_to_the_last_slot_is_gone():
    space = space_with_holes(100, [(10, 5), (30, 20)])
    assert space.take_first(5) == 10
    assert space.holes == [(30, 20)]


def test_what_fits_in_no_hole_is_not_given_although_enough_is_free_in_all():
    space = space_with_holes(100, [(10, 5), (30, 5)])
    assert space.free == 10
    assert space.take_first(6) is None
    assert space.holes == [(10, 5), (30, 5)]


def test_take_at_takes_only_the_beginning_of_a_hole_that_is_large_enough():
    space = space_with_holes(100, [(10, 5), (30, 20)])
    assert not space.take_at(10, 6)
    assert not space.take_at(31, 3)
    assert not space.take_at(9, 1)
    assert not space.take_at(90, 1)
    assert (space.free, space.holes) == (25, [(10, 5), (30, 20)])
    assert space.take_at(30, 3)
    assert (space.free, space.holes) == (22, [(10, 5), (33, 17)])


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
    space = space_with_holes(100, [(10, 5), (30, 20)])
    before = space.snapshot()
    space.take_first(20)
    space.take_at(10, 2)
    space.give(80, 5)
    space.restore(before)
    assert (space.free, space.holes) == (25, [(10, 5), (30, 20)])
    assert space.take_first(20) == 30


verbs = st.one_of(
    st.tuples(st.just("first"), st.integers(1, 12), st.just(0)),
    st.tuples(st.just("at"), st.integers(1, 8), st.integers(0, 39)),
    st.tuples(st.just("give"), st.integers(1, 8), st.integers(0, 39)),
)


@given(st.lists(verbs, max_size=60))
def test_the_space_is_a_bitmap(calls):
    size = 40
    space, taken = AddressSpace(size), [False] * size

    def free_at(start: int, length: int) -> bool:
        return start + length <= size and not any(taken[start : start + length])

    for verb, length, start in calls:
        if verb == "first":
            fitting = next((at for at in range(size) if free_at(at, length)), None)
            assert space.take_first(length) == fitting
            if fitting is not None:
                taken[fitting : fitting + length] = [True] * length
        elif verb == "at":
            begins_a_hole = free_at(start, length) and (start == 0 or taken[start - 1])
            assert space.take_at(start, length) == begins_a_hole
            if begins_a_hole:
                taken[start : start + length] = [True] * length
        elif start + length <= size:
            if all(taken[start : start + length]):
                space.give(start, length)
                taken[start : start + length] = [False] * length
            else:
                with pytest.raises(CheckError):
                    space.give(start, length)
        runs = "".join("x" if used else "." for used in taken).split("x")
        lengths = [len(run) for run in runs if run]
        assert [length for _, length in space.holes] == lengths
        assert all(not any(taken[at : at + room]) for at, room in space.holes)
        assert space.free == taken.count(False)
        assert space.largest == max(lengths, default=0)
