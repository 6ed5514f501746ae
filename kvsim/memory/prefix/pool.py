"""The blocks of a pool: who is referenced, who is cached, and who is handed out next.

A free block may still hold a known content: it stays in the map and can be hit until it is handed out again, which is
its eviction. All free blocks wait in one queue; its head is handed out next. Rules 1 and 5 to 9 of vLLM's manager.
"""

from collections import OrderedDict
from collections.abc import Iterable

from kvsim.errors import CheckError

Key = tuple[int, int]
"""(layer group, number of the content): one content is kept apart for each group of layers."""

NULL = 0
"""The block that is never handed out; it stands in block tables where a window needs none any more."""


class BlockPool:
    """Blocks 1 to `blocks`, with reference counts, the map from content to blocks, and the queue of the free ones.

    Before May 2026 a freed block always went to the tail of the queue; since then one that holds no known content goes
    to the head, to be reused first (`unknown_first`; vLLM PR 42656).
    """

    def __init__(self, blocks: int, *, unknown_first: bool = True) -> None:
        self.blocks = blocks
        self.references = 0
        """Sum of all reference counts."""
        self.stored = 0
        """Blocks that were given a known content, since the start."""
        self.evicted = 0
        """Blocks that lost it."""
        self.cached_blocks = 0
        """Free blocks with a known content."""
        self._unknown_first = unknown_first
        self._free: OrderedDict[int, None] = OrderedDict.fromkeys(range(1, blocks + 1))
        self._counts = [0] * (blocks + 1)
        self._keys: list[Key | None] = [None] * (blocks + 1)
        self._holders: dict[Key, list[int]] = {}
        """Blocks of each content, first stored first. They are never merged: two sequences that compute the same
        block keep both copies."""

    @property
    def free_blocks(self) -> int:
        """Blocks that nobody references, cached ones included."""
        return len(self._free)

    @property
    def contents(self) -> int:
        """Different contents that can be hit now."""
        return len(self._holders)

    def find(self, key: Key) -> int | None:
        """The first stored block that holds this content, if any. Pure."""
        holders = self._holders.get(key)
        return holders[0] if holders else None

    def is_free(self, block: int) -> bool:
        """Nobody references the block. Pure; false for the null block, which is never free."""
        return block in self._free

    def take(self, count: int) -> list[int]:
        """Hand out `count` blocks from the head of the queue, with one reference each; what they held is evicted.

        Raises CheckError where there are not as many.
        """
        if count > len(self._free):
            raise CheckError(f"{count} blocks are taken and only {len(self._free)} are free")
        taken = [self._free.popitem(last=False)[0] for _ in range(count)]
        for block in taken:
            self._counts[block] = 1
            if self._keys[block] is not None:
                self.cached_blocks -= 1
                self._evict(block)
        self.references += count
        return taken

    def hit(self, blocks: Iterable[int]) -> None:
        """One reference more for each block (null ones aside); a free one leaves the queue."""
        for block in blocks:
            if block == NULL:
                continue
            if not self._counts[block]:
                del self._free[block]
                self.cached_blocks -= 1
            self._counts[block] += 1
            self.references += 1

    def store(self, block: int, key: Key) -> None:
        """A referenced block is full: it can be found by its content from now on."""
        if self._keys[block] is not None or not self._counts[block]:
            raise CheckError(f"block {block} is stored although it is stored already, or free")
        self._keys[block] = key
        self._holders.setdefault(key, []).append(block)
        self.stored += 1

    def free(self, blocks: Iterable[int]) -> None:
        """One reference less for each block (null ones aside), in this order; at zero it joins the queue.

        Those of unknown content come to the head, in this order; the others to the tail.
        """
        first: list[int] = []
        for block in blocks:
            if block == NULL:
                continue
            if not self._counts[block]:
                raise CheckError(f"block {block} is freed although nobody references it (a double free)")
            self.references -= 1
            self._counts[block] -= 1
            if self._counts[block]:
                continue
            known = self._keys[block] is not None
            self.cached_blocks += known
            if known or not self._unknown_first:
                self._free[block] = None
            else:
                first.append(block)
        for block in reversed(first):
            self._free[block] = None
            self._free.move_to_end(block, last=False)

    def audit(self, tables: Iterable[Iterable[int]]) -> None:
        """Count all references again from the block tables of those who hold them; CheckError where they differ."""
        counts = [0] * (self.blocks + 1)
        for table in tables:
            for block in table:
                counts[block] += block != NULL
        if counts != self._counts or sum(counts) != self.references:
            raise CheckError("the reference counts differ from the block tables (a leak, or a double free)")
        if {block for block in range(1, self.blocks + 1) if not counts[block]} != set(self._free):
            raise CheckError("the free queue is not the set of unreferenced blocks")
        if sum(self._keys[block] is not None for block in self._free) != self.cached_blocks:
            raise CheckError(f"{self.cached_blocks} blocks are counted as cached, and the free queue holds others")
        found = sorted((block, key) for key, holders in self._holders.items() for block in holders)
        if found != [(block, key) for block, key in enumerate(self._keys) if key is not None]:
            raise CheckError("the map from content to blocks differs from what the blocks hold")

    def queue(self) -> list[int]:
        """The free blocks, next one first. O(blocks)."""
        return list(self._free)

    def _evict(self, block: int) -> None:
        key = self._keys[block]
        assert key is not None
        self._keys[block] = None
        holders = self._holders[key]
        holders.remove(block)
        if not holders:
            del self._holders[key]
        self.evicted += 1
