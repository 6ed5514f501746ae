"""Which block holds what, for the allocator that keeps contents: it has block tables itself, and they are followed."""

from kvsim.engine.addresses.bands import CACHED, FREE
from kvsim.engine.addresses.block_map import BlockMap
from kvsim.memory.prefix import PrefixAllocator


class TableMap(BlockMap):
    """The blocks that the allocator's own tables name; what nobody holds is free, or cached.

    A block that several sequences hold is owned by the first that came to hold it, as in a `BlockMap`. The pool's null
    block lies outside: block 1 is the first here.
    """

    follows = True

    def __init__(self, allocator: PrefixAllocator) -> None:
        super().__init__(0)
        self._allocator = allocator
        self._cached: set[int] = set()
        """Those noted as cached."""

    @property
    def free(self) -> int:
        """The allocator has had the blocks: there are always enough."""
        return self._allocator.blocks

    def loose(self) -> list[tuple[int, int]]:
        """And those cached once that have been forgotten since, or cached when nobody looked (a warm start)."""
        pool = self._allocator.pool
        touched = {block for block in self._freed if block not in self._holders}
        known = len(self._cached) + sum(pool.is_cached(block + 1) for block in touched)
        if known != pool.cached_blocks:
            touched |= {block for block in range(self._allocator.blocks) if block not in self._holders}
        found = []
        for block in sorted(touched):
            cached = pool.is_cached(block + 1)
            if block in self._freed or cached != (block in self._cached):
                found.append((block, CACHED if cached else FREE))
            (self._cached.add if cached else self._cached.discard)(block)
        return found

    def release(self, sequence: int, table: list[int]) -> None:
        """See `BlockMap`."""
        self._freed += [block for at, block in enumerate(table) if self._let_go(sequence, at, block)]

    def _take(self, sequence: int, at: int) -> int:
        """What the allocator's table has there."""
        block = self._allocator.table(sequence)[at] - 1
        holders = self._holders.setdefault(block, [])
        holders.append(sequence)
        if len(holders) == 1:
            self.fresh.setdefault(sequence, set()).add(at)
            self._cached.discard(block)
        return block
