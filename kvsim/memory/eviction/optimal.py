"""Belady's rule, which no engine can follow: the block that will be used again latest goes first. The ceiling."""

from collections.abc import Sequence
from heapq import heappop, heappush

from kvsim.memory.eviction.interface import Blocks, Cache


class Optimal(Cache):
    """Knows all prompts, in the order in which they will be served; no policy finds more blocks.

    What is never used again is not kept. Of blocks that are used again by the same prompt the one nearest its end goes
    first, so that what is kept of a prompt is always its head: so the rule, which is optimal for single blocks (of
    intervals between two uses it keeps the most that fit), is optimal for prefixes too.
    """

    def __init__(self, capacity_blocks: int, prompts: Sequence[Blocks]) -> None:
        super().__init__(capacity_blocks)
        self._prompts = len(prompts)
        self._next_uses = _next_uses(prompts)
        self._served = 0
        self._ranks: dict[int, tuple[int, int]] = {}
        self._heap: list[tuple[tuple[int, int], int]] = []
        """(rank, block), the next to go on top; ranks that are no longer a block's own are skipped."""

    def __contains__(self, block: int) -> bool:
        return block in self._ranks

    def __len__(self) -> int:
        return len(self._ranks)

    def serve(self, blocks: Blocks) -> int:
        """The next of the prompts that were announced."""
        found = super().serve(blocks)
        self._served += 1
        return found

    def touch(self, block: int, position: int) -> None:
        """Rank it by its next use, or let it go at once."""
        next_use = self._next_uses[self._served][position]
        if next_use == self._prompts:
            self._ranks.pop(block, None)
            return
        self._ranks[block] = rank = (-next_use, -position)
        heappush(self._heap, (rank, block))

    def evict(self) -> None:
        """Throw out the one used latest."""
        while True:
            rank, block = heappop(self._heap)
            if self._ranks.get(block) == rank:
                del self._ranks[block]
                return


def _next_uses(prompts: Sequence[Blocks]) -> list[list[int]]:
    """For each block of each prompt the number of the next prompt that has it; the number of prompts if none has."""
    upcoming: dict[int, int] = {}
    found: list[list[int]] = []
    never = len(prompts)
    for number in range(len(prompts) - 1, -1, -1):
        blocks = prompts[number]
        found.append([upcoming.get(block, never) for block in blocks])
        upcoming.update(dict.fromkeys(blocks, number))
    found.reverse()
    return found
