"""What allocators count of their own work, told by hand: allocations, frees, copies, mapped pages, table bytes."""

from dataclasses import asdict

from kvsim.memory.contiguous import ContiguousAllocator
from kvsim.memory.no_cache import NoCacheAllocator
from kvsim.memory.paged import PagedAllocator
from kvsim.memory.reserve import ReserveAllocator
from kvsim.memory.virtual import VirtualAllocator
from kvsim.request import Sequence
from kvsim.step import Ask, Grant
from tests.memory.stories import decode, decoding, sequence


def counts(allocator):
    """All counts that are not zero."""
    return {name: count for name, count in asdict(allocator.upkeep).items() if count}


def test_paged_counts_blocks_and_four_bytes_for_each_entry_of_a_table():
    allocator = PagedAllocator(40, block_size=4)
    one, two = decoding(allocator, 6, 8)  # two blocks each
    assert counts(allocator) == {"allocations": 4, "table_bytes": 16}
    decode(allocator)  # the second takes a third block
    assert counts(allocator) == {"allocations": 5, "table_bytes": 20}
    allocator.release(one)
    assert counts(allocator) == {"allocations": 5, "frees": 2, "table_bytes": 20}  # the most at any time
    allocator.release(two)
    assert counts(allocator) == {"allocations": 5, "frees": 5, "table_bytes": 20}


def test_blocks_in_common_are_allocated_and_freed_once_and_stand_in_every_table():
    allocator = PagedAllocator(40, block_size=4)
    [one] = decoding(allocator, 6)
    two = sequence(1, 6)
    allocator.fork(one, two)
    assert counts(allocator) == {"allocations": 2, "table_bytes": 16}
    decode(allocator)
    assert counts(allocator) == {"allocations": 3, "copies": 1, "table_bytes": 16}
    allocator.release(one)
    assert counts(allocator) == {"allocations": 3, "frees": 1, "copies": 1, "table_bytes": 16}
    allocator.release(two)
    assert counts(allocator) == {"allocations": 3, "frees": 3, "copies": 1, "table_bytes": 16}


def test_what_could_not_be_had_is_not_counted():
    for allocator in (PagedAllocator(16, block_size=4), ContiguousAllocator(16, chunk=4, growth="cat")):
        decoding(allocator, 6)
        before = (allocator.upkeep.allocations, allocator.upkeep.copies)
        allocator.acquire([Ask(sequence(1, 4), 4, admit=True), Ask(sequence(2, 12), 12, admit=True)])
        assert (allocator.upkeep.allocations, allocator.upkeep.copies) == before


def test_a_region_is_allocated_once_and_again_each_time_it_moves_but_not_when_it_grows_in_place():
    allocator = ContiguousAllocator(40, chunk=4)
    one, two = decoding(allocator, 4, 2)  # 0..3 and 4..7
    assert counts(allocator) == {"allocations": 2, "table_bytes": 32}
    decode(allocator)  # the first moves to 8..15
    assert counts(allocator) == {"allocations": 3, "frees": 1, "copies": 1, "table_bytes": 32}
    allocator.release(two)
    for _ in range(4):
        decode(allocator)  # with eight written the first grows in place
    assert allocator.owned(one) == 12
    assert counts(allocator) == {"allocations": 3, "frees": 2, "copies": 1, "table_bytes": 32}
    allocator.release(one)
    assert counts(allocator) == {"allocations": 3, "frees": 3, "copies": 1, "table_bytes": 32}


def test_concatenation_moves_every_region_at_every_token_however_many_tensors_it_is():
    for tensors in (1, 4):
        allocator = ContiguousAllocator(100, growth="cat", tensors=tensors)
        decoding(allocator, 8, 8)
        for _ in range(3):
            decode(allocator)
        assert counts(allocator) == {"allocations": 2 + 6, "frees": 6, "copies": 6, "table_bytes": 32}


def test_a_compaction_copies_the_regions_that_slide_and_allocates_none():
    allocator = ContiguousAllocator(50, chunk=10, compaction="on-failure")
    held = decoding(allocator, 10, 10, 6, 10, 8)
    allocator.release(held[1])
    allocator.release(held[3])
    newcomer = Sequence(9, 20, None, tokens=20)
    assert allocator.acquire([Ask(newcomer, 20, admit=True)]).copied_slots == 14
    assert counts(allocator) == {"allocations": 5 + 1, "frees": 2, "copies": 2, "table_bytes": 5 * 16}


def test_reserve_allocates_once_a_request():
    allocator = ReserveAllocator(100, max_model_len=20)
    one, _ = decoding(allocator, 5, 5)
    for _ in range(10):
        decode(allocator)
    allocator.release(one)
    assert counts(allocator) == {"allocations": 2, "frees": 1, "table_bytes": 32}


def test_virtual_counts_page_rows_and_the_pages_in_them_whether_or_not_a_step_waits_for_them():
    for ahead in (False, True):
        allocator = VirtualAllocator(400, page_tokens=10, row_pages=64, mapped_ahead=ahead)
        one, _ = decoding(allocator, 15, 9)
        assert counts(allocator) == {"allocations": 3, "mapped_pages": 3 * 64, "table_bytes": 12}
        decode(allocator)
        decode(allocator)  # the second has ten written
        allocator.release(one)
        assert counts(allocator) == {"allocations": 4, "frees": 2, "mapped_pages": 4 * 64, "table_bytes": 16}


def test_a_leap_counts_as_many_as_its_steps():
    made = [
        lambda: PagedAllocator(400, block_size=4),
        lambda: VirtualAllocator(400, page_tokens=10, row_pages=64, mapped_ahead=True),
        lambda: ContiguousAllocator(400, chunk=100),
    ]
    for make in made:
        leaping, stepping = make(), make()
        decoding(leaping, 5, 9, 20)
        decoding(stepping, 5, 9, 20)
        leap = leaping.leap(37)
        assert leap.steps == 37
        leap.apply(37)
        for _ in range(37):
            assert decode(stepping) == Grant()
        assert counts(leaping) == counts(stepping)


def test_no_cache_has_no_upkeep():
    allocator = NoCacheAllocator()
    [one] = decoding(allocator, 10)
    decode(allocator)
    allocator.release(one)
    assert counts(allocator) == {}
