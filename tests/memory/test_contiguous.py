"""`contiguous`, told by hand: one region a request, which grows in place where it can and moves where it cannot."""

from functools import partial

import pytest

from kvsim.errors import CheckError
from kvsim.memory.contiguous import ContiguousAllocator
from kvsim.request import Sequence
from kvsim.step import Ask, Chunk, Grant, PoolUse, Short
from tests.memory import stories

decoding = partial(stories.decoding, admit=True, granted=Grant())


def test_a_region_takes_the_whole_prompt_at_admission_whatever_the_first_chunk():
    allocator = ContiguousAllocator(100, chunk=10)
    one = Sequence(0, 34, None, tokens=34)
    assert allocator.acquire([Ask(one, 8, admit=True)]) == Grant()
    assert allocator.owned(one) == 40
    allocator.settle([Chunk(one, 8, 0)])
    assert allocator.usage() == PoolUse(8, 32, 0, 0, 0, 60, 60)


@pytest.mark.parametrize(("tokens", "slots"), [(1, 10), (9, 10), (10, 10), (11, 20), (20, 20)])
def test_a_region_is_a_whole_number_of_growth_chunks(tokens, slots):
    assert ContiguousAllocator(100, chunk=10).capacity(tokens) == slots


def test_a_region_grows_in_place_where_the_slots_behind_it_are_free():
    allocator = ContiguousAllocator(40, chunk=10)
    [one] = decoding(allocator, 10)
    assert allocator.acquire([], decodes=True) == Grant(copied_slots=0)
    assert allocator.owned(one) == 20
    assert allocator.usage() == PoolUse(10, 10, 0, 0, 0, 20, 20)
    assert not allocator.settle([])


def test_a_region_with_a_neighbour_behind_it_moves_and_holds_both_places_until_the_step_is_over():
    allocator = ContiguousAllocator(60, chunk=10)
    one, two = decoding(allocator, 10, 5)  # 0..9 and 10..19
    assert allocator.acquire([Ask(one, 11)]) == Grant(copied_slots=10)
    # The new region is 20..39; the old one, with 10 written tokens as the target's content, is still held.
    assert allocator.usage() == PoolUse(used=15, unwritten=15, dead=0, moving=10, cached=0, free=20, largest_hole=20)
    allocator.audit([one, two])
    assert allocator.settle([])
    assert allocator.usage() == PoolUse(17, 13, 0, 0, 0, 30, 20)
    allocator.audit([one, two])


def test_growing_needs_room_for_the_whole_new_region_while_the_old_one_is_held():
    allocator = ContiguousAllocator(35, chunk=10)
    one, _ = decoding(allocator, 10, 5)
    # 20..34 is free: enough for the ten more slots, not for a copy of all twenty.
    assert allocator.acquire([Ask(one, 11)]) == Short("capacity", need_slots=20, free_slots=15, largest_hole_slots=15)
    assert allocator.usage() == PoolUse(15, 5, 0, 0, 0, 15, 15)


def test_enough_free_slots_without_a_hole_that_fits_are_fragmentation():
    allocator = ContiguousAllocator(50, chunk=10)
    held = decoding(allocator, *[10] * 5)
    allocator.release(held[1])
    allocator.release(held[3])
    newcomer = Sequence(9, 20, None, tokens=20)
    assert allocator.acquire([Ask(newcomer, 20, admit=True)]) == Short("fragmentation", 20, 20, 10)
    longer = Sequence(10, 21, None, tokens=21)
    assert allocator.acquire([Ask(longer, 21, admit=True)]) == Short("capacity", 30, 20, 10)


def test_external_slots_are_the_holes_below_the_need_or_below_all_that_is_free():
    allocator = ContiguousAllocator(60, chunk=10)
    held = decoding(allocator, *[10] * 6)
    for number in (1, 3, 4):
        allocator.release(held[number])
    # Holes of 10 and 20 slots, 30 free in all.
    assert [allocator.external(need) for need in (10, 11, 20, 21, 30, 1000)] == [0, 10, 10, 30, 30, 30]


def test_a_pool_that_is_one_hole_loses_nothing_to_shape_however_large_the_need():
    allocator = ContiguousAllocator(60, chunk=10)
    decoding(allocator, 10)
    assert allocator.external(1000) == 0


def test_several_asks_are_met_together_or_not_at_all():
    allocator = ContiguousAllocator(40, chunk=10)
    [one] = decoding(allocator, 10)
    newcomer = Sequence(5, 30, None, tokens=30, admission=5)
    # The running request would grow in place to 20, then the newcomer finds 20 of the 30 it needs.
    assert allocator.acquire([Ask(newcomer, 30, admit=True)], decodes=True) == Short("capacity", 30, 20, 20)
    assert allocator.owned(one) == 10
    assert allocator.usage() == PoolUse(10, 0, 0, 0, 0, 30, 30)
    allocator.audit([one])


def test_a_failed_ask_takes_back_the_copy_of_the_one_before_it():
    allocator = ContiguousAllocator(60, chunk=10)
    one, two, three = decoding(allocator, 9, 9, 9)  # 0..29 taken, each with 9 written
    allocator.acquire([], decodes=True)
    allocator.settle([])  # 10 written: everyone is due
    # `one` would move to 30..49 (20 slots), `two` finds only 50..59.
    assert allocator.acquire([], decodes=True) == Short("capacity", 20, 10, 10)
    assert allocator.usage() == PoolUse(30, 0, 0, 0, 0, 30, 30)
    allocator.audit([one, two, three])
    assert allocator.acquire([Ask(three, 11)]) == Grant(0)  # in place: nothing of the attempt is left behind


def test_those_that_must_grow_do_so_in_the_order_of_their_admission():
    allocator = ContiguousAllocator(100, chunk=10)
    first, second = decoding(allocator, 10, 10)
    got = allocator.acquire([], decodes=True)
    # The first has a neighbour and moves to 20..39; so the second, now with a neighbour too, moves to 40..59.
    # In the other order the second would have grown in place.
    assert got == Grant(copied_slots=20)
    assert allocator.usage() == PoolUse(20, 20, 0, 20, 0, 40, 40)
    allocator.settle([])
    allocator.release(second)
    assert allocator.usage().largest_hole == 60  # 40..99
    allocator.audit([first])


def test_a_finished_request_returns_its_region_and_holes_merge():
    allocator = ContiguousAllocator(60, chunk=10)
    held = decoding(allocator, *[10] * 3)
    allocator.release(held[1])
    assert allocator.usage() == PoolUse(20, 0, 0, 0, 0, 40, 30)
    allocator.release(held[0])
    allocator.release(held[2])
    assert allocator.usage() == PoolUse(0, 0, 0, 0, 0, 60, 60)
    allocator.audit([])


def test_a_region_is_given_back_once():
    allocator = ContiguousAllocator(60, chunk=10)
    [one] = decoding(allocator, 10)
    allocator.release(one)
    with pytest.raises(CheckError, match="double free"):
        allocator.release(one)


def test_a_request_admitted_again_is_due_by_its_new_region_alone():
    allocator = ContiguousAllocator(60, chunk=10)
    [one] = decoding(allocator, 9)
    allocator.release(one)
    one.written, one.admission, one.tokens = 0, 1, 12
    assert allocator.acquire([Ask(one, 12, admit=True)]) == Grant()
    allocator.settle([Chunk(one, 12, 0)])
    one.tokens += 1
    allocator.begin_decode(one)
    assert allocator.leap(100).steps == 8  # 12 of 20 slots are written


def test_a_leap_ends_where_the_first_request_outgrows_its_region():
    allocator = ContiguousAllocator(100, chunk=10)
    decoding(allocator, 4, 7)
    leap = allocator.leap(100)
    assert leap.steps == 3  # the second has 7 of 10 slots written
    assert [leap.use_at(step).unwritten for step in range(3)] == [9, 7, 5]
    leap.apply(3)
    assert allocator.usage() == PoolUse(17, 3, 0, 0, 0, 80, 80)
    assert allocator.leap(100).steps == 0


@pytest.mark.parametrize(("tokens", "written"), [(1, 0), (10, 0), (11, 10), (20, 10), (21, 20)])
def test_the_last_growth_is_asked_for_when_the_region_before_is_full(tokens, written):
    assert ContiguousAllocator(100, chunk=10).last_growth(tokens) == written


def test_a_growth_chunk_below_one_slot_is_refused():
    with pytest.raises(ValueError, match="chunk is 0"):
        ContiguousAllocator(100, chunk=0)
