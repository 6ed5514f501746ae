"""What a cache of prefix blocks is, to ask of a whole trace what one policy of eviction is worth.

Requests come one after the other and nothing else happens: no time, nobody who runs meanwhile. A prompt finds the
blocks at its head that are there, up to the first that is not; then all of its blocks are in the cache, and the policy
throws blocks out until the rest fits. A block is a number: equal numbers hold equal tokens behind an equal prefix.

A new policy is one file with a subclass of `Cache`, and one line in the registry of this room.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

Blocks = Sequence[int]
"""The blocks of one prompt, head first."""


class Cache(ABC):
    """At most `capacity_blocks` blocks between two requests; ValueError where that is less than one."""

    def __init__(self, capacity_blocks: int) -> None:
        if capacity_blocks < 1:
            raise ValueError(f"capacity_blocks: a cache has at least one block; got {capacity_blocks}")
        self.capacity_blocks = capacity_blocks

    def serve(self, blocks: Blocks) -> int:
        """How many blocks at the head of a prompt are found; afterwards the prompt has been used. Mutates.

        Blocks are touched from the last to the first, as engines free them: of two that were used together the one
        nearer the end of the prompt is the older, because it is worth nothing without those before it.
        """
        found = self.found(blocks)
        for position in range(len(blocks) - 1, -1, -1):
            self.touch(blocks[position], position)
        self.shrink()
        return found

    def found(self, blocks: Blocks) -> int:
        """Blocks at the head of a prompt that are there. Pure."""
        for position, block in enumerate(blocks):
            if block not in self:
                return position
        return len(blocks)

    def shrink(self) -> None:
        """Throw blocks out until no more than the capacity are left. Mutates."""
        while len(self) > self.capacity_blocks:
            self.evict()

    @abstractmethod
    def __contains__(self, block: int) -> bool: ...

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def touch(self, block: int, position: int) -> None:
        """Use a block that is there, or take a new one in; it stands `position` blocks behind the prompt's head."""

    @abstractmethod
    def evict(self) -> None:
        """Throw out one block, the policy's choice."""
