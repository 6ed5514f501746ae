"""`virtual`, told by hand: a page row is mapped when a token needs it; what is left unwritten is less than a page."""

import pytest

from kvsim.capacity.pages import page_row
from kvsim.catalog.footprint import Footprint
from kvsim.catalog.models import model
from kvsim.errors import CheckError
from kvsim.memory.virtual import VirtualAllocator
from kvsim.step import Ask, Grant, PoolUse, Short
from tests.memory.stories import decode, decoding, sequence

ROW = {"page_tokens": 1024, "row_pages": 64}
"""2 MiB pages under Llama-3-8B: 32 layers, K and V."""


@pytest.mark.parametrize(("prompt", "rows"), [(1, 1), (1023, 1), (1024, 1), (1025, 2), (5000, 5)])
def test_a_prompt_maps_two_pages_a_layer_for_every_1024_tokens(prompt, rows):
    allocator = VirtualAllocator(10 * 1024, **ROW)
    one = sequence(0, prompt)
    assert allocator.acquire([Ask(one, prompt, True, prompt, True)]) == Grant(mapped_pages=rows * 2 * 32)
    assert allocator.owned(one) == allocator.capacity(prompt) == rows * 1024


def test_a_decoding_request_maps_a_row_each_time_it_crosses_a_multiple_of_the_tokens_per_page():
    allocator = VirtualAllocator(10 * 1024, **ROW)
    [one] = decoding(allocator, 1000)
    mapped = [decode(allocator).mapped_pages for _ in range(1100)]
    # The token number 1025 is written in step 24 (from 0), number 2049 in step 1048.
    assert [step for step, pages in enumerate(mapped) if pages] == [24, 1048]
    assert set(mapped) == {0, 64}
    assert allocator.owned(one) == 3 * 1024


def test_everyone_who_crosses_in_one_step_is_mapped_for_in_that_step():
    allocator = VirtualAllocator(10 * 1024, **ROW)
    decoding(allocator, 1024, 2048, 7)
    late = sequence(9, 10)
    assert allocator.acquire([Ask(late, 10)], decodes=True) == Grant(mapped_pages=3 * 64)


def test_a_step_does_not_wait_for_pages_that_are_mapped_ahead():
    allocator = VirtualAllocator(10 * 1024, **ROW, mapped_ahead=True)
    [one] = decoding(allocator, 1024)
    assert decode(allocator) == Grant()
    assert allocator.owned(one) == 2048
    assert allocator.leap(5000).steps == 5000


def test_a_leap_goes_up_to_the_next_step_that_waits_for_pages():
    allocator = VirtualAllocator(10 * 1024, **ROW)
    decoding(allocator, 1000, 500)
    leap = allocator.leap(5000)
    assert leap.steps == 24
    assert leap.use_at(23) == PoolUse(1500 + 46, 2048 - 1546, 0, 0, 0, 8 * 1024, 8 * 1024)
    leap.apply(24)
    assert allocator.leap(5000).steps == 0
    assert decode(allocator) == Grant(mapped_pages=64)
    assert allocator.leap(5000).steps == 524 - 25
    assert allocator.leap(7).steps == 7


def test_the_pool_is_whole_rows_and_a_row_that_is_not_there_is_said_so():
    allocator = VirtualAllocator(3 * 1024 + 1023, **ROW)
    assert allocator.pool_slots == 3 * 1024
    decoding(allocator, 1024, 1024)
    assert decode(allocator) == Short("capacity", 2 * 1024, 1024, 1024)


def test_a_finished_request_returns_every_row_once():
    allocator = VirtualAllocator(10 * 1024, **ROW)
    one, two = decoding(allocator, 3000, 10)
    allocator.release(one)
    assert allocator.usage() == PoolUse(10, 1014, 0, 0, 0, 9 * 1024, 9 * 1024)
    with pytest.raises(CheckError, match="double free"):
        allocator.release(one)
    allocator.audit([two])
    allocator.free_blocks += 1
    with pytest.raises(CheckError, match="virtual: 10 free and 1 referenced"):
        allocator.audit([two])


def test_addresses_are_contiguous_whatever_pages_lie_behind_them_so_no_slot_is_lost_to_shape():
    allocator = VirtualAllocator(10 * 1024, **ROW)
    decoding(allocator, 1, 1, 1)
    assert not allocator.has_holes
    assert allocator.external(5 * 1024) == 0


@pytest.mark.parametrize("name", ["llama-3-8b", "yi-6b", "llama-2-7b"])
@pytest.mark.parametrize("page_bytes", [65536, 2 * 2**20])
def test_a_request_wastes_at_most_a_page_less_one_token_in_each_layers_k_and_v(name, page_bytes):
    """vAttention's bound, 2 x layers x (page - 1 token) bytes, reached by a token that has a page to itself."""
    footprint = Footprint(model(name))
    row = page_row(footprint, page_bytes)
    bound = 2 * footprint.model.layers * page_bytes - footprint.kv_bytes_per_token
    allocator = VirtualAllocator(4 * row.tokens, page_tokens=row.tokens, row_pages=row.pages)
    [one] = decoding(allocator, 1)
    wasted = []
    for _ in range(3 * row.tokens):
        wasted.append((allocator.owned(one) - allocator.decodes.written) * footprint.kv_bytes_per_token)
        decode(allocator)
    assert max(wasted) == bound
    assert min(wasted) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"page_tokens": 0}, "page_tokens is 0"),
        ({"row_pages": 0}, "row_pages is 0"),
        ({"pool_slots": 1023}, "pool_slots is 1023; the pool must hold at least one page row of 1024"),
    ],
)
def test_impossible_settings_are_refused_by_name(arguments, message):
    with pytest.raises(ValueError, match=message):
        VirtualAllocator(**{"pool_slots": 4096, **ROW, **arguments})
