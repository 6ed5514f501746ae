"""Caches whose blocks have a rank each: the lowest goes first."""

from heapq import heappop, heappush
from typing import Any

from kvsim.memory.eviction.interface import Cache


class Ranked(Cache):
    """A subclass says in `touch` what rank a block has from now on."""

    def __init__(self, capacity_blocks: int) -> None:
        super().__init__(capacity_blocks)
        self._ranks: dict[int, tuple[Any, ...]] = {}
        self._heap: list[tuple[tuple[Any, ...], int]] = []
        """(rank, block), the next to go on top; ranks that are no longer a block's own are skipped."""

    def __contains__(self, block: int) -> bool:
        return block in self._ranks

    def __len__(self) -> int:
        return len(self._ranks)

    def _set(self, block: int, rank: tuple[Any, ...]) -> None:
        self._ranks[block] = rank
        heappush(self._heap, (rank, block))

    def evict(self) -> None:
        """Throw out the lowest."""
        while True:
            rank, block = heappop(self._heap)
            if self._ranks.get(block) == rank:
                del self._ranks[block]
                return
