"""The blocks of a pool: who is referenced, who is cached, and who is handed out next.

A free block may still hold a known content: it stays in the map and can be hit until it is handed out again, which is
its eviction. All free blocks wait in one queue; its head is handed out next. Rules 1 and 5 to 9 of vLLM's manager.

The queue is kept in three parts, since blocks join at its ends only: those of unknown content that came back to its
head, those never used, which stay in the order of their ids, and those that came back to its tail. So a pool costs what
was used of it, whatever its size.
"""

from collections import Counter, OrderedDict
from collections.abc import Collection, Iterable
from itertools import accumulate, chain, islice, repeat

from kvsim.errors import CheckError
from kvsim.memory.residency import CacheListener

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
        self.most_references = 0
        """The highest that it ever was."""
        self.stored = 0
        """Blocks that were given a known content, since the start."""
        self.evicted = 0
        """Blocks that lost it."""
        self.cached_blocks = 0
        """Free blocks with a known content."""
        self.left = 0
        """Blocks that left the queue of the free ones, since the start."""
        self.joined = 0
        """Blocks that came back to it."""
        self.listener: CacheListener | None = None
        """Told by number of the content what is evicted; only pools of one group of layers have one."""
        self._block_tokens = 0
        self._gone: list[int] = []
        """Numbers that it has still to be told of."""
        self._unknown_first = unknown_first
        self._head: list[int] = []
        """Came back to the head; the next one last."""
        self._unused = 1
        """The first block that was never used."""
        self._tail: OrderedDict[int, None] = OrderedDict()
        """Came back to the tail, in this order."""
        self._counts: dict[int, int] = {}
        """References of those that have any."""
        self._keys: dict[int, Key] = {}
        self._holders: dict[Key, list[int]] = {}
        """Blocks of each content, first stored first. They are never merged: two sequences that compute the same
        block keep both copies."""

    @property
    def free_blocks(self) -> int:
        """Blocks that nobody references, cached ones included."""
        return len(self._head) + self.blocks + 1 - self._unused + len(self._tail)

    @property
    def contents(self) -> int:
        """Different contents that can be hit now."""
        return len(self._holders)

    @property
    def counted(self) -> tuple[int, int, int, int, int]:
        """All counts since the start; whoever does what should not count puts them back."""
        return self.most_references, self.stored, self.evicted, self.left, self.joined

    @counted.setter
    def counted(self, counts: tuple[int, int, int, int, int]) -> None:
        self.most_references, self.stored, self.evicted, self.left, self.joined = counts

    def listen(self, listener: CacheListener, block_tokens: int) -> None:
        """Tell `listener` by number of the content what is evicted, in blocks of so many tokens. Mutates."""
        self.listener = listener
        self._block_tokens = block_tokens

    def find(self, key: Key) -> int | None:
        """The first stored block that holds this content, if any. Pure."""
        holders = self._holders.get(key)
        return holders[0] if holders else None

    def is_free(self, block: int) -> bool:
        """Nobody references the block. Pure; false for the null block, which is never free."""
        return block != NULL and block not in self._counts

    def is_cached(self, block: int) -> bool:
        """Nobody references the block, and it can be hit. Pure."""
        return block in self._keys and block not in self._counts

    def take(self, count: int) -> list[int]:
        """Hand out `count` blocks from the head of the queue, with one reference each; what they held is evicted.

        Raises CheckError where there are not as many.
        """
        if count > self.free_blocks:
            raise CheckError(f"{count} blocks are taken and only {self.free_blocks} are free")
        taken = [self._pop() for _ in range(count)]
        self.left += count
        if self._gone and self.listener is not None:
            self.listener.removed(self._gone, self._block_tokens)
            self._gone = []
        self._counts.update(dict.fromkeys(taken, 1))
        self.references += count
        self.most_references = max(self.most_references, self.references)
        return taken

    def evictions(self, count: int) -> list[int]:
        """How many blocks lose their content if the next 0, 1, .. `count` of the queue are handed out. Pure; O(count).

        Only those at the tail can hold any.
        """
        empty = min(count, self.free_blocks - len(self._tail))
        known = map(self._keys.__contains__, islice(self._tail, count - empty))
        return list(accumulate(chain(repeat(0, empty), known), initial=0))

    def untouched(self, blocks: Collection[int], count: int) -> int:
        """How many of the next `count` blocks of the queue come before the first of these cached ones. Pure."""
        empty = min(count, self.free_blocks - len(self._tail))
        places = (place for place, block in enumerate(islice(self._tail, count - empty)) if block in blocks)
        return empty + next(places, count - empty)

    def _pop(self) -> int:
        """The head of the queue leaves it, and what it held is evicted."""
        if self._head:
            return self._head.pop()
        if self._unused <= self.blocks:
            self._unused += 1
            return self._unused - 1
        block, _ = self._tail.popitem(last=False)
        key = self._keys.pop(block, None)
        if key is not None:
            holders = self._holders[key]
            holders.remove(block)
            if not holders:
                del self._holders[key]
            self.cached_blocks -= 1
            self.evicted += 1
            if self.listener is not None:
                self._gone.append(key[1])
        return block

    def hit(self, blocks: Iterable[int]) -> None:
        """One reference more for each block (null ones aside); a free one leaves the queue."""
        for block in blocks:
            if block == NULL:
                continue
            if block not in self._counts:
                del self._tail[block]
                self.cached_blocks -= 1
                self.left += 1
            self._counts[block] = self._counts.get(block, 0) + 1
            self.references += 1
        self.most_references = max(self.most_references, self.references)

    def store(self, block: int, key: Key) -> None:
        """A referenced block is full: it can be found by its content from now on."""
        if block in self._keys or block not in self._counts:
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
            if block not in self._counts:
                raise CheckError(f"block {block} is freed although nobody references it (a double free)")
            self.references -= 1
            self._counts[block] -= 1
            if self._counts[block]:
                continue
            del self._counts[block]
            self.joined += 1
            known = block in self._keys
            self.cached_blocks += known
            if known or not self._unknown_first:
                self._tail[block] = None
            else:
                first.append(block)
        self._head += reversed(first)

    def forget(self) -> bool:
        """No content is known any more; False while any block is referenced. The queue stays as it is. Mutates.

        `BlockPool.reset_prefix_cache` of vLLM. Blocks that lose what they held so count as evicted nowhere.
        """
        if self._counts:
            return False
        self._keys.clear()
        self._holders.clear()
        self.cached_blocks = 0
        if self.listener is not None:
            self.listener.cleared()
        return True

    def audit(self, tables: Iterable[Iterable[int]]) -> None:
        """Count all references again from the block tables of those who hold them; CheckError where they differ."""
        counts = Counter(block for table in tables for block in table if block != NULL)
        if counts != self._counts or counts.total() != self.references:
            raise CheckError("the reference counts differ from the block tables (a leak, or a double free)")
        waiting = [*self._head, *self._tail]
        if len({*waiting, *counts}) != len(waiting) + len(counts) or len(waiting) + len(counts) != self._unused - 1:
            raise CheckError("the free queue is not the set of unreferenced blocks")
        if sum(block in self._keys for block in waiting) != self.cached_blocks:
            raise CheckError(f"{self.cached_blocks} blocks are counted as cached, and the free queue holds others")
        found = {block: key for key, holders in self._holders.items() for block in holders}
        if found != self._keys:
            raise CheckError("the map from content to blocks differs from what the blocks hold")

    def queue(self) -> list[int]:
        """The free blocks, next one first. O(blocks)."""
        return [*reversed(self._head), *range(self._unused, self.blocks + 1), *self._tail]
