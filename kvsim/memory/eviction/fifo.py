"""First in, first out: the block that came in longest ago goes first, however often it was used since."""

from kvsim.memory.eviction.lru import Lru


class Fifo(Lru):
    """A use changes nothing; a block that comes back is new."""

    def touch(self, block: int, position: int) -> None:
        """Take in what is not there."""
        self._blocks.setdefault(block)
