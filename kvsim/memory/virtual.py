"""`virtual`: contiguous virtual addresses, physical pages mapped as a sequence grows (vAttention, kvcached).

Each layer keeps its K and its V in a region of virtual addresses of its own, long enough for the longest sequence, so
that kernels find contiguous KV and nothing is ever moved. Room is taken in page rows: one page in each of these
regions, 2 x layers pages, mapped together each time a sequence outgrows the tokens of a page. What a page holds
follows from the model (`capacity.pages`). A row is a block of that many slots, so that a sequence leaves at most a
row less one token unwritten: vAttention's bound of 2 x layers x (page - 1 token) bytes.
"""

from collections.abc import Sequence as Seq

from kvsim.memory.paged import BlockAllocator, PagedLeap
from kvsim.step import Ask, Grant, Short


class VirtualAllocator(BlockAllocator):
    """Page rows of `page_tokens` slots, `row_pages` pages each.

    With `mapped_ahead` the pages are mapped in the background before they are needed and no step waits for one;
    otherwise every Grant says how many pages its step must map first. vAttention admits without a watermark.
    """

    name = "virtual"

    def __init__(self, pool_slots: int, *, page_tokens: int, row_pages: int, mapped_ahead: bool = False) -> None:
        if page_tokens < 1:
            raise ValueError(f"page_tokens is {page_tokens}; a page must hold at least one token")
        if row_pages < 1:
            raise ValueError(
                f"row_pages is {row_pages}; a row has at least one page, 2 x layers where K and V are apart"
            )
        if pool_slots < page_tokens:
            raise ValueError(f"pool_slots is {pool_slots}; the pool must hold at least one page row of {page_tokens}")
        super().__init__(pool_slots, block_size=page_tokens)
        self.page_tokens = page_tokens
        self.row_pages = row_pages
        self.mapped_ahead = mapped_ahead

    def acquire(self, asks: Seq[Ask], *, decodes: bool = False) -> Grant | Short:
        before = self.upkeep.mapped_pages
        got = super().acquire(asks, decodes=decodes)
        mapped = self.upkeep.mapped_pages - before
        return got if not mapped or self.mapped_ahead else Grant(mapped_pages=mapped)

    def take(self, blocks: int, entries: int) -> None:
        super().take(blocks, entries)
        self.upkeep.mapped_pages += blocks * self.row_pages

    def leap(self, limit: int) -> PagedLeap:
        # A step that waits for pages takes longer than its neighbours: a leap goes up to it.
        return PagedLeap(self, limit if self.mapped_ahead else self.phases.quiet(self.decodes.clock, limit))
