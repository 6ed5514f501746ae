"""What the address recorder writes down, small runs by hand; the laws stand in `tests/laws/test_addresses.py`."""

from kvsim.content import Content, Run, own_stream
from kvsim.engine.run import simulate
from kvsim.memory.contiguous import ContiguousAllocator
from kvsim.memory.no_cache import NoCacheAllocator
from kvsim.memory.paged import PagedAllocator
from kvsim.memory.prefix import PrefixAllocator
from kvsim.memory.radix.allocator import RadixAllocator
from kvsim.memory.radix.pool import SlotPool
from kvsim.memory.radix.tree import RadixTree
from kvsim.memory.reserve import ReserveAllocator
from kvsim.metrics.requests import whose
from kvsim.request import Request
from kvsim.scheduling.continuous import ContinuousScheduler
from kvsim.scheduling.sglang.serving import SglangServing
from kvsim.scheduling.sglang.settings import Settings
from kvsim.scheduling.static import StaticScheduler
from kvsim.step import CLASSES
from kvsim.timing.interface import LinearTiming

SECOND = -1
"""The second sample of request 0, as a sequence."""


def changes(allocator, *requests, scheduler=ContinuousScheduler, **limits):
    """Those of requests that arrive at once, by the lengths of their prompts and outputs."""
    made = [Request(number, 0, prompt, out, more_outputs=more) for number, (prompt, out, *more) in enumerate(requests)]
    return changed(allocator, made, scheduler, **limits)


def changed(allocator, requests, scheduler=ContinuousScheduler, **limits):
    """(time, start, length, sequence, class) of a run whose steps take 10 ps each."""
    log = simulate(
        requests,
        scheduler(allocator, **limits),
        LinearTiming(step_ps=10),
        max_model_len=32,
        addresses=True,
    ).recording.addresses.log
    columns = zip(log.time_ps, log.start, log.slots, log.sequence, log.kind, strict=True)
    return [(time, start, slots, sequence, CLASSES[kind]) for time, start, slots, sequence, kind in columns]


def test_a_prompt_is_reserved_until_its_step_is_over_and_then_each_token_takes_a_slot():
    assert changes(PagedAllocator(8, block_size=4), (3, 3)) == [
        (0, 0, 4, 0, "reserved"),
        (10, 0, 3, 0, "used"),
        (20, 3, 1, 0, "used"),
        (20, 4, 1, 0, "reserved"),
        (20, 5, 3, 0, "internal"),
        (30, 0, 8, 0, "free"),
    ]


def test_a_region_lies_where_the_allocator_put_it_and_grows_into_what_has_come_free():
    assert changes(ContiguousAllocator(16, chunk=4), (3, 4), (2, 2)) == [
        (0, 0, 4, 0, "reserved"),
        (0, 4, 3, 1, "reserved"),
        (0, 7, 1, 1, "internal"),
        (10, 0, 3, 0, "used"),
        (10, 4, 2, 1, "used"),
        (20, 4, 4, 0, "free"),
        (20, 3, 1, 0, "used"),
        (20, 4, 2, 0, "reserved"),
        (20, 6, 2, 0, "internal"),
        (30, 4, 1, 0, "used"),
        (40, 0, 8, 0, "free"),
    ]


def test_a_copy_is_moving_while_its_source_is_used():
    assert changes(ContiguousAllocator(16, growth="cat"), (2, 2)) == [
        (0, 0, 2, 0, "reserved"),
        (10, 2, 2, 0, "moving"),
        (10, 4, 1, 0, "reserved"),
        (10, 0, 2, 0, "used"),
        (20, 2, 3, 0, "free"),
        (20, 0, 2, 0, "free"),
    ]


def test_what_the_address_space_rounds_up_is_external():
    assert changes(ReserveAllocator(16, max_model_len=32, size="oracle", fit="buddy"), (4, 2)) == [
        (0, 0, 5, 0, "reserved"),
        (0, 5, 3, 0, "external"),
        (10, 0, 4, 0, "used"),
        (20, 0, 8, 0, "free"),
    ]


def test_samples_share_full_blocks_and_the_first_to_write_copies_the_last_one():
    """The full block counts to the first sample, which gets a last block of its own; the second keeps the old one."""
    assert changes(PagedAllocator(16, block_size=4), (5, 3, 2)) == [
        (0, 0, 7, 0, "reserved"),
        (0, 7, 1, 0, "internal"),
        (10, 0, 4, 0, "used"),
        (10, 8, 1, 0, "moving"),
        (10, 9, 2, 0, "reserved"),
        (10, 11, 1, 0, "internal"),
        (10, 4, 1, SECOND, "used"),
        (10, 5, 1, SECOND, "reserved"),
        (10, 6, 2, SECOND, "internal"),
        (20, 4, 4, 0, "free"),
        (20, 8, 2, 0, "used"),
        (30, 0, 4, 0, "free"),
        (30, 8, 4, 0, "free"),
    ]
    assert whose(SECOND) == (0, 1)


def test_a_prefix_that_was_found_lies_where_it_was_cached_and_counts_to_whoever_found_it():
    """The second request begins as the first: its block is cached until then, and again when both have left."""
    said = [Run(own_stream(0), 0, 4)]
    first = Request(0, 0, 5, 1, content=Content([*said, Run(own_stream(0), 4, 2)]))
    second = Request(1, 40, 6, 1, content=Content([*said, Run(own_stream(1), 4, 3)]))
    assert changed(PrefixAllocator(16, block_size=4), [first, second]) == [
        (0, 0, 5, 0, "reserved"),
        (0, 5, 3, 0, "internal"),
        (10, 0, 4, 0, "cached"),
        (10, 4, 4, 0, "free"),
        (40, 0, 4, 1, "used"),
        (40, 4, 2, 1, "reserved"),
        (40, 6, 2, 1, "internal"),
        (50, 0, 4, 0, "cached"),
        (50, 4, 4, 0, "free"),
    ]


def test_an_edge_of_the_tree_is_cut_where_it_lies_and_counts_to_whoever_found_its_beginning():
    """The second request finds four of the five tokens that the first has left behind."""
    said = [Run(own_stream(0), 0, 4)]
    first = Request(0, 0, 5, 1, content=Content([*said, Run(own_stream(0), 4, 2)]))
    second = Request(1, 40, 6, 1, content=Content([*said, Run(own_stream(1), 4, 3)]))
    assert changed(RadixAllocator(16), [first, second]) == [
        (0, 0, 5, 0, "reserved"),
        (10, 0, 5, 0, "cached"),
        (40, 0, 4, 1, "used"),
        (40, 5, 2, 1, "reserved"),
        (50, 0, 4, 0, "cached"),
        (50, 5, 2, 0, "cached"),
    ]


def test_of_two_who_computed_the_same_one_gives_its_slots_back_and_shares_the_others():
    """Both prompts begin with the same three tokens, and are computed in one step."""
    said = [Run(7, 0, 3)]
    first = Request(0, 0, 3, 2, content=Content(said))
    second = Request(1, 0, 4, 2, content=Content([*said, Run(own_stream(1), 3, 9)]))
    assert changed(RadixAllocator(16), [first, second]) == [
        (0, 0, 3, 0, "reserved"),
        (0, 3, 4, 1, "reserved"),
        (10, 3, 3, 0, "free"),
        (10, 0, 3, 0, "used"),
        (10, 6, 1, 1, "used"),
        (10, 7, 1, 0, "reserved"),
        (10, 8, 1, 1, "reserved"),
        (20, 0, 3, 0, "cached"),
        (20, 6, 3, 0, "cached"),
    ]


def test_pages_that_come_free_are_taken_again_first_and_the_tree_keeps_full_ones():
    """Of two pages of the first request one is full; the other comes free, and is the first of the second's."""
    first, second = Request(0, 0, 5, 1), Request(1, 40, 9, 1)
    assert changed(RadixAllocator(24, page_size=4), [first, second]) == [
        (0, 0, 5, 0, "reserved"),
        (0, 5, 3, 0, "internal"),
        (10, 4, 4, 0, "free"),
        (10, 0, 4, 0, "cached"),
        (40, 4, 9, 1, "reserved"),
        (40, 13, 3, 1, "internal"),
        (50, 12, 4, 0, "free"),
        (50, 4, 8, 0, "cached"),
    ]


def test_sglang_hands_a_chunk_over_to_the_tree_while_it_is_computed_and_it_stays_reserved_until_then():
    """With two batches in flight: when the rest is planned, the first chunk, of four, is the tree's and not written."""
    settings = Settings(chunked_prefill_size=4, overlap=True)
    serving = SglangServing(RadixTree(SlotPool(24)), settings, max_model_len=32)
    assert changed(None, [Request(0, 0, 6, 2, max_tokens=2)], lambda _: serving) == [
        (0, 0, 6, 0, "reserved"),
        (10, 0, 4, 0, "used"),
        (10, 6, 1, 0, "reserved"),
        (20, 4, 2, 0, "used"),
        (30, 0, 7, 0, "cached"),
    ]


def test_whoever_is_done_before_its_batch_holds_dead_slots():
    assert changes(PagedAllocator(16, block_size=4), (3, 1), (3, 3), scheduler=StaticScheduler) == [
        (0, 0, 3, 0, "reserved"),
        (0, 3, 1, 0, "internal"),
        (0, 4, 4, 1, "reserved"),
        (10, 0, 3, 0, "dead"),
        (10, 4, 3, 1, "used"),
        (20, 7, 1, 1, "used"),
        (20, 8, 1, 1, "reserved"),
        (20, 9, 3, 1, "internal"),
        (30, 0, 12, 0, "free"),
    ]


def test_where_nothing_is_kept_nothing_lies_anywhere():
    assert changes(NoCacheAllocator(), (3, 2)) == []
