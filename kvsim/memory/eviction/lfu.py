"""Least frequently used: the block with the fewest uses goes first, the older of two with equally many."""

from heapq import heappop, heappush

from kvsim.memory.eviction.interface import Cache


class Lfu(Cache):
    """Uses are counted while a block is in the cache; one that comes back begins at one."""

    def __init__(self, capacity_blocks: int) -> None:
        super().__init__(capacity_blocks)
        self._ranks: dict[int, tuple[int, int, int]] = {}
        self._heap: list[tuple[tuple[int, int, int], int]] = []
        """(rank, block), the next to go on top; ranks that are no longer a block's own are skipped."""
        self._touches = 0

    def __contains__(self, block: int) -> bool:
        return block in self._ranks

    def __len__(self) -> int:
        return len(self._ranks)

    def touch(self, block: int, position: int) -> None:
        """Count one use."""
        self._touches += 1
        rank = self._ranks.get(block)
        self._ranks[block] = rank = self.rank(1 if rank is None else rank[0] + 1, position, self._touches)
        heappush(self._heap, (rank, block))

    def rank(self, uses: int, position: int, touched: int) -> tuple[int, int, int]:
        """By what blocks are put in order: the lowest goes first. `uses` comes first, `touched` is never equal."""
        return uses, touched, 0

    def evict(self) -> None:
        """Throw out the lowest."""
        while True:
            rank, block = heappop(self._heap)
            if self._ranks.get(block) == rank:
                del self._ranks[block]
                return
