"""Every kind of allocator beside its naive model: `PAIRS[name](slots, longest)` makes both."""

from collections import Counter

from kvsim.memory.contiguous import ContiguousAllocator
from kvsim.memory.no_cache import NoCacheAllocator
from kvsim.memory.paged import PagedAllocator
from kvsim.memory.prefix import PrefixAllocator
from kvsim.memory.radix.allocator import RadixAllocator
from kvsim.memory.reserve import ReserveAllocator
from kvsim.memory.virtual import VirtualAllocator
from tests.memory.naive import NaiveNothing
from tests.memory.naive_blocks import NaiveBlocks
from tests.memory.naive_pages import TENSORS, NaivePages
from tests.memory.naive_regions import POWERS, NaiveRegions
from tests.memory.prefix.naive_tables import NaivePrefix
from tests.memory.radix.naive_rows import NaiveRadix

LONGEST = 24
"""No request holds more tokens, unless a page does."""


class Heard:
    """Copies by content, as a listener knows them."""

    def __init__(self):
        self.copies = Counter()

    def stored(self, pieces, before, content, start, tokens):
        self.copies.update(pieces)

    def removed(self, pieces, tokens, *, for_good=False):
        self.copies.subtract(pieces)

    def admitted(self, sequence, content, tokens, found, beyond):
        assert all(self.copies[piece] for piece, _ in found)


def paged(size, watermark=0.0):
    def make(slots, longest):
        slots = max(slots, size)
        return PagedAllocator(slots, block_size=size, watermark=watermark), NaiveBlocks(slots, size, watermark)

    return make


def contiguous(**options):
    growth, chunk = options.get("growth", "chunk"), options.get("chunk", 1)

    def sizes(tokens):
        if growth == "double":
            return next(power for power in POWERS if power >= tokens)
        return next(slots for slots in range(0, 4 * LONGEST, chunk) if slots >= tokens)

    def make(slots, longest):
        return ContiguousAllocator(slots, **{"chunk": chunk} | options), NaiveRegions(
            slots,
            sizes,
            fit=options.get("fit", "first"),
            unit=options.get("rounding_slots", 1),
            in_place=growth != "cat",
            parts=options.get("tensors", 1),
            compaction="compaction" in options,
        )

    return make


def reserve(fit, size):
    def make(slots, longest):
        sizes = {"max": lambda tokens: longest}.get(size, lambda tokens: tokens)
        allocator = ReserveAllocator(slots, max_model_len=longest, fit=fit, size=size)
        return allocator, NaiveRegions(slots, sizes, fit=fit)

    return make


def virtual(page_tokens, ahead):
    def make(slots, longest):
        options = {"page_tokens": page_tokens, "row_pages": TENSORS, "mapped_ahead": ahead}
        return VirtualAllocator(slots, **options), NaivePages(slots, page_tokens, ahead)

    make.longest = max(4, 3 * page_tokens)
    return make


def prefix(size, heard=False, **options):
    def make(slots, longest):
        slots = max(slots, size)
        allocator = PrefixAllocator(slots, block_size=size, **options)
        if heard:
            allocator.listen(Heard())
        return allocator, NaivePrefix(slots, size, **options)

    return make


def radix(size):
    def make(slots, longest):
        slots = max(slots, size)
        return RadixAllocator(slots, page_size=size), NaiveRadix(slots, size)

    return make


PAIRS = {
    **{f"paged {size}": paged(size) for size in (1, 2, 4, 7, 16, 256)},
    "paged 5, watermark": paged(5, 0.2),
    **{f"prefix {size}": prefix(size) for size in (1, 3, 16)},
    "prefix 2, tail": prefix(2, unknown_first=False),
    "prefix 5, watermark": prefix(5, watermark=0.2),
    "prefix 3, heard": prefix(3, heard=True),
    **{f"radix {size}": radix(size) for size in (1, 2, 5, 16)},
    "first, exact": contiguous(),
    "first, chunk": contiguous(chunk=4),
    "best, chunk": contiguous(fit="best", chunk=4),
    "worst, exact": contiguous(fit="worst", growth="exact"),
    "next, chunk": contiguous(fit="next", chunk=3),
    "next, double": contiguous(fit="next", growth="double"),
    "buddy, chunk": contiguous(fit="buddy", chunk=3),
    "buddy, double": contiguous(fit="buddy", growth="double"),
    "buddy, exact": contiguous(fit="buddy", growth="exact"),
    "buddy, cat": contiguous(fit="buddy", growth="cat"),
    "first, double, rounded": contiguous(growth="double", rounding_slots=3),
    "first, cat": contiguous(growth="cat"),
    "first, cat by tensors": contiguous(growth="cat", tensors=4),
    "best, cat by tensors, rounded": contiguous(fit="best", growth="cat", tensors=3, rounding_slots=3),
    "first, chunk, compacted": contiguous(chunk=3, compaction="on-failure"),
    "next, double, compacted": contiguous(fit="next", growth="double", compaction="on-failure"),
    "worst, exact, rounded, compacted": contiguous(
        fit="worst", growth="exact", rounding_slots=4, compaction="on-failure"
    ),
    "best, cat, compacted": contiguous(fit="best", growth="cat", compaction="on-failure"),
    "first, cat by tensors, compacted": contiguous(growth="cat", tensors=4, compaction="on-failure"),
    "reserve max, first": reserve("first", "max"),
    "reserve max, buddy": reserve("buddy", "max"),
    "reserve oracle, best": reserve("best", "oracle"),
    "reserve pow2, buddy": reserve("buddy", "pow2"),
    **{
        f"virtual {size}{', ahead' * ahead}": virtual(size, ahead)
        for size in (1, 3, 32, 256, 300, 2048)
        for ahead in (False, True)
    },
    "no-cache": lambda slots, longest: (NoCacheAllocator(), NaiveNothing()),
}
AHEAD = {f"prefix {size}, ahead": prefix(size, ahead=1) for size in (1, 4)}
"""Those whose sequences must have a slot more than they need when they begin to decode."""
