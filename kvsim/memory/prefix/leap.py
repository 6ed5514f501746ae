"""The leap of a pool whose blocks are known one by one: which block goes to whom is known in advance.

While it lasts no block is freed and nobody else asks, so that the i-th block taken is the i-th of the pool's queue.
"""

from itertools import cycle, islice
from typing import TYPE_CHECKING

from kvsim.memory.phases import PhaseLeap, weights
from kvsim.step import PoolUse

if TYPE_CHECKING:
    from kvsim.memory.prefix.allocator import PrefixAllocator


class PrefixLeap(PhaseLeap):
    """Decode steps of a pool that stores what is full and evicts what is cached."""

    __slots__ = ("_allocator", "_use")

    def __init__(self, allocator: "PrefixAllocator", limit: int) -> None:
        self._allocator = allocator
        self._use = use = allocator.usage()
        phases, clock = allocator.members.phases, allocator.decodes.clock + allocator.ahead
        # What its members have unwritten in the first step, less the blocks that they get in it.
        decoding = phases.unwritten_sum(clock, 1, 1, 0) - phases.crossing(clock) * phases.size
        steps = phases.served(clock, limit, allocator.free_blocks)
        super().__init__(phases, clock, steps, others=use.unwritten - decoding)

    def use_at(self, step: int) -> PoolUse:
        allocator, use = self._allocator, self._use
        blocks = self._phases.blocks(self._clock, step + 1)
        evicted = allocator.pool.evictions(blocks)[blocks]
        used = use.used + self._phases.count * step
        cached = use.cached - evicted * allocator.block_size
        free = use.free - (blocks - evicted) * allocator.block_size
        return PoolUse(used, allocator.pool_slots - used - use.dead - cached - free, use.dead, 0, cached, free, free)

    def cached_sum(self, steps: int, a: int, b: int) -> int:
        phases, clock = self._phases, self._clock
        evictions = self._allocator.pool.evictions(phases.blocks(clock, steps))
        total = self._use.cached * weights(0, steps, a, b)
        if not evictions[-1]:
            return total
        # What is evicted in a step is not cached from that step on. Everyone crosses once in each round.
        size, lost, taken = phases.size, 0, 0
        crossings = [(step, n) for step in range(min(steps, size)) if (n := phases.crossing(clock + step))]
        for start in range(0, steps, size):
            for step, number in crossings:
                if start + step < steps:
                    taken += number
                    total -= (evictions[taken] - lost) * size * weights(start + step, steps, a, b)
                    lost = evictions[taken]
        return total

    def apply(self, steps: int) -> None:
        """In each round of as many steps as a block has slots everyone takes a block, and fills one, in one order.

        A block that fills is stored in the step that writes its last token. What is stored is in use and what is taken
        is not, so that all can be taken before any is stored.
        """
        allocator, phases, clock = self._allocator, self._phases, self._clock
        if allocator.pool.listener is not None:
            self._apply_heard(steps)
            return
        pool, holdings = allocator.pool, allocator.holdings
        takers, taken = allocator.crossing(clock, steps), pool.take(phases.blocks(clock, steps))
        for place, holding in enumerate(takers):
            holding.tables[0] += taken[place :: len(takers)]
        if allocator.caches:
            filling = allocator.decodes.clock + 1
            fillers = cycle(allocator.crossing(filling, steps))
            for holding in islice(fillers, phases.blocks(filling, steps)):
                holdings.store(holding, (holding.stored + 1) * phases.size)
        allocator.count()
        allocator.decodes.advance(steps)

    def _apply_heard(self, steps: int) -> None:
        """Step by step where anybody takes or fills a block, so that each is told when it happens, and in order."""
        allocator, size = self._allocator, self._phases.size
        decodes, pool, holdings = allocator.decodes, allocator.pool, allocator.holdings
        crossings = []
        for offset in range(min(steps, size)):
            moves = allocator.moves(self._clock + offset, decodes.clock + 1 + offset)
            if moves:
                crossings.append((offset, moves))
        done = 0
        for start in range(0, steps, size):
            for offset, moves in crossings:
                step = start + offset
                if step >= steps:
                    break
                decodes.advance(step - done)
                done = step
                for holding, takes, fills in moves:
                    if takes:
                        holding.tables[0] += pool.take(1)
                    if fills:
                        holdings.store(holding, (holding.stored + 1) * size)
        decodes.advance(steps - done)
        allocator.count()
