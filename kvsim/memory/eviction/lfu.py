"""Least frequently used: the block with the fewest uses goes first, the older of two with equally many."""

from kvsim.memory.eviction.ranked import Ranked


class Lfu(Ranked):
    """Uses are counted while a block is in the cache; one that comes back begins at one."""

    def __init__(self, capacity_blocks: int) -> None:
        super().__init__(capacity_blocks)
        self._touches = 0

    def touch(self, block: int, position: int) -> None:
        """Count one use."""
        self._touches += 1
        rank = self._ranks.get(block)
        self._set(block, self.rank(1 if rank is None else rank[0] + 1, position, self._touches))

    def rank(self, uses: int, position: int, touched: int) -> tuple[int, int, int]:
        """By what blocks are put in order: the lowest goes first. `uses` comes first, `touched` is never equal."""
        return uses, touched, 0
