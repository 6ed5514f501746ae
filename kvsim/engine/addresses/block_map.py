"""Which block holds what, for allocators that only count blocks: the numbers that vLLM would hand out.

Rules 7 and 8 of its block pool with caching off: blocks are handed out from the head of a queue that begins in the
order of their numbers; whoever leaves puts its blocks back at the head, those of its last tokens first.
"""

from collections import deque

from kvsim.engine.addresses.bands import FREE


class BlockMap:
    """Block tables with real numbers, as many entries as the allocator counts.

    A block that several sequences hold is owned by the first of them, in the order in which they came to hold it; when
    that one leaves, by the next. `fresh` says which entries of its table are an owner's since the last `settle`.
    """

    follows = False
    """The tables are those of the allocator, which has given back and taken by now."""

    def __init__(self, blocks: int) -> None:
        self.tables: dict[int, list[int]] = {}
        """By id of the sequence."""
        self.fresh: dict[int, set[int]] = {}
        self._free = deque(range(blocks))
        self._holders: dict[int, list[int]] = {}
        """Sequences that hold a block, its owner first."""
        self._freed: list[int] = []

    def owner(self, block: int) -> int:
        """The sequence to which a block that is held counts."""
        return self._holders[block][0]

    @property
    def free(self) -> int:
        """Blocks that nobody holds."""
        return len(self._free)

    def grow(self, sequence: int, blocks: int) -> None:
        """The table of `sequence` gets `blocks` blocks more."""
        table = self.tables.setdefault(sequence, [])
        for _ in range(blocks):
            table.append(self._take(sequence, len(table)))

    def shares_last(self, sequence: int) -> bool:
        """Somebody else holds the last block of `sequence` as well."""
        return len(self._holders[self.tables[sequence][-1]]) > 1

    def copy_last(self, sequence: int) -> None:
        """`sequence` gets a last block of its own in place of one that it shares."""
        table = self.tables[sequence]
        self._let_go(sequence, len(table) - 1, table[-1])
        table[-1] = self._take(sequence, len(table) - 1)

    def fork(self, parent: int, child: int) -> None:
        """`child` holds the blocks of `parent` as well."""
        table = self.tables[child] = self.tables[parent].copy()
        for block in table:
            self._holders[block].append(child)

    def release(self, sequence: int, table: list[int]) -> None:
        """`sequence` holds the blocks of `table` no more; the table is not among `tables` any more."""
        gone = [block for at, block in reversed(list(enumerate(table))) if self._let_go(sequence, at, block)]
        self._free.extendleft(reversed(gone))
        self._freed += gone

    def loose(self) -> list[tuple[int, int]]:
        """The blocks that nobody holds and that have come free since the last `settle`, by number, and their class."""
        return sorted((block, FREE) for block in set(self._freed) if block not in self._holders)

    def settle(self) -> None:
        """What has changed is written down: nothing is fresh any more."""
        self._freed.clear()
        self.fresh.clear()

    def _take(self, sequence: int, at: int) -> int:
        """A free block becomes entry number `at` of a table."""
        block = self._free.popleft()
        self._holders[block] = [sequence]
        self.fresh.setdefault(sequence, set()).add(at)
        return block

    def _let_go(self, sequence: int, at: int, block: int) -> bool:
        """`sequence` does not hold the block, entry number `at` of its table, any more; True if nobody does."""
        holders = self._holders[block]
        owned = holders[0] == sequence
        holders.remove(sequence)
        if not holders:
            del self._holders[block]
        elif owned:
            # Whoever shares a block has it at the same place of its table.
            self.fresh.setdefault(holders[0], set()).add(at)
        return not holders
