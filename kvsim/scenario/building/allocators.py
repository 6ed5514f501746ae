"""Allocators by name, and in which units they hand out a pool."""

from kvsim.capacity.pages import PageRow
from kvsim.capacity.tensors import kv_tensors
from kvsim.catalog.engines import Profile
from kvsim.catalog.footprint import Footprint
from kvsim.memory.contiguous import ContiguousAllocator
from kvsim.memory.interface import Allocator
from kvsim.memory.no_cache import NoCacheAllocator
from kvsim.memory.paged import PagedAllocator
from kvsim.memory.prefix import PrefixAllocator
from kvsim.memory.radix.allocator import RadixAllocator
from kvsim.memory.reserve import ReserveAllocator
from kvsim.memory.virtual import VirtualAllocator
from kvsim.scenario.deployment import chosen
from kvsim.scenario.schema.serving import (
    ContiguousSettings,
    NoCacheSettings,
    PagedSettings,
    RadixSettings,
    ReserveSettings,
    VirtualSettings,
)
from kvsim.scenario.schema.settings import Settings
from kvsim.scheduling.sglang.books import RowBooks


def block_size_of(settings: Settings, rules: Profile) -> int:
    """Slots of a block: the paged allocator's, or the profile's for allocators that have none."""
    allocator = settings.allocator
    return chosen(allocator.block_size if isinstance(allocator, PagedSettings) else None, rules.block_size)


def units(allocator: Allocator, rules: Profile) -> tuple[int | None, int | None]:
    """Slots of the unit in which the pool is handed out, and of that in which attention looks slots up; None: none.

    What a look-up costs is known of blocks (see `block_lookup_tokens`), so that shorter pages are read as those of the
    profile.
    """
    if isinstance(allocator, PagedAllocator | PrefixAllocator):
        return allocator.block_size, allocator.block_size
    if isinstance(allocator, RadixAllocator | RowBooks):
        return allocator.page_size, max(allocator.page_size, rules.block_size)
    return None, None


def allocator_of(
    settings: Settings,
    rules: Profile,
    footprint: Footprint,
    pool_slots: int,
    *,
    max_model_len: int,
    row: PageRow | None,
    mapped_ahead: bool,
) -> Allocator:
    """The allocator that the settings name, over `pool_slots` slots.

    `row`: a page of each tensor, for the virtual one; `mapped_ahead`: mapping takes no time, so that no step waits for
    it. ValueError where a number is one that the policy cannot take.
    """
    allocator = settings.allocator
    try:
        if isinstance(allocator, NoCacheSettings):
            return NoCacheAllocator()
        if isinstance(allocator, VirtualSettings):
            assert row is not None
            return VirtualAllocator(pool_slots, page_tokens=row.tokens, row_pages=row.pages, mapped_ahead=mapped_ahead)
        if isinstance(allocator, PagedSettings):
            block_size, watermark = block_size_of(settings, rules), chosen(allocator.watermark, rules.watermark)
            if not chosen(allocator.prefix_caching, rules.prefix_caching):
                return PagedAllocator(pool_slots, block_size=block_size, watermark=watermark)
            unknown_first = allocator.free_queue == "split"
            return PrefixAllocator(pool_slots, block_size=block_size, watermark=watermark, unknown_first=unknown_first)
        if isinstance(allocator, RadixSettings):
            return RadixAllocator(
                pool_slots,
                page_size=allocator.page_size,
                eviction=allocator.eviction,
                caching=allocator.prefix_caching,
            )
        if isinstance(allocator, ContiguousSettings):
            tensors, rounding_slots = kv_tensors(footprint) if allocator.growth == "cat" else (1, 1)
            return ContiguousAllocator(
                pool_slots,
                fit=allocator.fit,
                growth=allocator.growth,
                chunk=allocator.chunk,
                tensors=tensors,
                rounding_slots=1 if allocator.fit == "buddy" else rounding_slots,
                compaction=allocator.compaction,
            )
        assert isinstance(allocator, ReserveSettings)
        return ReserveAllocator(pool_slots, max_model_len=max_model_len, size=allocator.size, fit=allocator.fit)
    except ValueError as error:
        raise ValueError(f"allocator {allocator.name}: {error}") from error
