"""Least recently used: the block that was used longest ago goes first."""

from collections import OrderedDict

from kvsim.memory.eviction.interface import Blocks, Cache


class Lru(Cache):
    """Blocks of a prompt are touched tail first, as vLLM and SGLang do: a prompt loses its end before its head."""

    def __init__(self, capacity_blocks: int) -> None:
        super().__init__(capacity_blocks)
        self._blocks: OrderedDict[int, None] = OrderedDict()
        """Oldest first."""

    def __contains__(self, block: int) -> bool:
        return block in self._blocks

    def __len__(self) -> int:
        return len(self._blocks)

    def touch(self, block: int, position: int) -> None:
        """Make it the youngest."""
        self._blocks[block] = None
        self._blocks.move_to_end(block)

    def evict(self) -> None:
        """Throw out the oldest."""
        self._blocks.popitem(last=False)


class LruHeadFirst(Lru):
    """Blocks of a prompt are touched head first: a prompt loses its head first, and with it the use of the rest."""

    def serve(self, blocks: Blocks) -> int:
        """As every cache, in the other order."""
        found = self.found(blocks)
        for position, block in enumerate(blocks):
            self.touch(block, position)
        self.shrink()
        return found
