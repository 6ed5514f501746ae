"""`no-cache`, told by hand: everybody finds room, because nothing is kept."""

import pytest

from kvsim.errors import CheckError
from kvsim.memory.no_cache import NoCacheAllocator
from kvsim.step import Ask, Grant, PoolUse
from tests.memory.stories import decode, decoding, sequence


def test_however_many_come_they_are_let_in_and_own_nothing():
    allocator = NoCacheAllocator()
    crowd = decoding(allocator, *[1000] * 500)
    assert decode(allocator) == Grant()
    assert allocator.usage() == PoolUse(0, 0, 0, 0, 0, 0, 0)
    assert {allocator.owned(one) for one in crowd} == {allocator.capacity(1000)} == {0}
    assert not allocator.keeps
    allocator.audit(crowd)


def test_it_knows_how_far_everyone_has_come_all_the_same():
    allocator = NoCacheAllocator()
    one, two = decoding(allocator, 10, 4)
    leap = allocator.leap(1000)
    assert leap.steps == 1000
    leap.apply(5)
    decode(allocator)
    assert (allocator.decodes.written_of(one), allocator.decodes.written_of(two)) == (16, 10)
    # With the token that each computes next, 17 and 11 tokens attend to themselves and all before.
    assert allocator.decodes.pairs == 17 * 18 // 2 + 11 * 12 // 2


def test_one_that_has_ended_or_comes_back_changes_nothing_but_who_decodes():
    allocator = NoCacheAllocator()
    one, two = decoding(allocator, 10, 4)
    allocator.retire(one)
    assert (one.written, one.decoding, allocator.decodes.count) == (10, False, 1)
    allocator.release(two)
    assert allocator.acquire([Ask(two, 5, admit=True)]) == Grant()
    allocator.land(two)
    allocator.begin_decode(two)
    assert (allocator.decodes.count, allocator.decodes.written) == (1, 4)
    allocator.audit([one, two])


def test_who_was_not_let_in_cannot_leave_and_who_is_no_longer_live_must():
    allocator = NoCacheAllocator()
    [one] = decoding(allocator, 10)
    with pytest.raises(CheckError, match="double free"):
        allocator.release(sequence(7, 3))
    with pytest.raises(CheckError, match=r"requests \[0\] were let in and are not live"):
        allocator.audit([])
    allocator.release(one)
    allocator.audit([])


def test_an_audit_counts_what_those_that_decode_have_written():
    allocator = NoCacheAllocator()
    held = decoding(allocator, 10, 4)
    allocator.decodes.written -= 1
    with pytest.raises(CheckError, match="13 tokens count as written by those that decode, they have 14"):
        allocator.audit(held)
