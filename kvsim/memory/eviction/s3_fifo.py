"""S3-FIFO: a small queue on trial before a main queue, and a memory of what failed the trial (Yang et al., FIFO Queues
are All You Need for Cache Eviction, SOSP'23, section 4 and algorithm 1).
"""

from collections import OrderedDict

from kvsim.memory.eviction.interface import Cache

SMALL_SHARE = 0.1
"""Share of the cache beyond which the small queue gives way (section 4.1)."""
MOST_USES = 3
"""Uses are counted in two bits (section 4.1)."""
PASSES_WITH = 2
"""Uses after coming in that take a block from the small queue to the main one: "more than once" (section 4.1)."""


class S3Fifo(Cache):
    """Blocks come into the small queue, or into the main one if they were thrown out of the small one lately."""

    def __init__(self, capacity_blocks: int) -> None:
        super().__init__(capacity_blocks)
        self._small: OrderedDict[int, int] = OrderedDict()
        """Uses since it came in, by block; the oldest first. So in `_main`."""
        self._main: OrderedDict[int, int] = OrderedDict()
        self._ghosts: OrderedDict[int, None] = OrderedDict()
        """Blocks without their content: as many as the main queue may have, the oldest first."""
        self._small_blocks = SMALL_SHARE * capacity_blocks
        self._ghost_blocks = capacity_blocks - int(self._small_blocks)

    def __contains__(self, block: int) -> bool:
        return block in self._small or block in self._main

    def __len__(self) -> int:
        return len(self._small) + len(self._main)

    def touch(self, block: int, position: int) -> None:
        """Count a use where it stands, or take it in."""
        for queue in (self._small, self._main):
            if block in queue:
                queue[block] = min(MOST_USES, queue[block] + 1)
                return
        if block in self._ghosts:
            del self._ghosts[block]
            self._main[block] = 0
        else:
            self._small[block] = 0

    def evict(self) -> None:
        """Throw out one block: of the small queue where that is at its share, else of the main one."""
        while self._small and (len(self._small) >= self._small_blocks or not self._main):
            block, uses = self._small.popitem(last=False)
            if uses < PASSES_WITH:
                self._remember(block)
                return
            self._main[block] = 0
        while True:
            block, uses = self._main.popitem(last=False)
            if uses == 0:
                return
            self._main[block] = uses - 1

    def _remember(self, block: int) -> None:
        self._ghosts[block] = None
        if len(self._ghosts) > self._ghost_blocks:
            self._ghosts.popitem(last=False)
