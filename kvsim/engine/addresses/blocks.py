"""The layout of blocks: where the allocator only counts them a `BlockMap` gives them numbers."""

from collections import deque
from collections.abc import Iterator, Sequence

from kvsim.engine.addresses.bands import DEAD, MOVING, USED, Bands, bands_of, differences
from kvsim.engine.addresses.block_map import BlockMap
from kvsim.engine.addresses.layout import Layout, Paint
from kvsim.engine.addresses.table_map import TableMap
from kvsim.memory.paged import BlockAllocator
from kvsim.memory.prefix import PrefixAllocator
from kvsim.metrics.requests import Journey


class BlockLayout(Layout):
    """Block tables by sequence.

    Between two looks sequences leave first, then the others grow in admission order; whoever was preempted leaves when
    the first of them finds too few blocks, as it happened (exactly so where the last admitted is the victim).
    """

    def __init__(self, allocator: BlockAllocator | PrefixAllocator) -> None:
        self._allocator = allocator
        self._size = allocator.block_size
        self._map = TableMap(allocator) if isinstance(allocator, PrefixAllocator) else BlockMap(allocator.blocks)
        self._noted: dict[int, Bands] = {}
        self._leaving: deque[tuple[int, list[int]]] = deque()
        """Those preempted in the plan at hand, with the tables that they had."""
        self._undecided: set[int] = set()
        """Those that have forked and not decoded since: the rest of a last block in common is whoever's writes last."""

    def forked(self, parent: int, child: int) -> None:
        """See `Layout`."""
        self._map.fork(parent, child)
        self._noted[child] = self._noted[parent]
        self._undecided |= {parent, child}

    def left(self, sequence: int, *, in_plan: bool) -> None:
        """See `Layout`."""
        table = self._map.tables.pop(sequence, None)
        if table is None:
            return
        del self._noted[sequence]
        self._undecided.discard(sequence)
        if in_plan and not self._map.follows:
            self._leaving.append((sequence, table))
        else:
            self._map.release(sequence, table)

    def changes(self, running: Sequence[Journey], *, stalled: bool) -> Iterator[Paint]:
        """See `Layout`."""
        size, blocks = self._size, self._map
        if not stalled:
            self._undecided.clear()
        copied = {journey.sequence.id for journey in running if self._grow(journey, stalled)}
        while self._leaving:
            blocks.release(*self._leaving.popleft())
        for block, kind in blocks.loose():
            yield Paint(block * size, size, 0, kind)
        for journey in running:
            number = journey.sequence.id
            bands = self._bands(journey, number in copied)
            yield from self._paint(number, self._noted.get(number, ()), bands)
            self._noted[number] = bands
        blocks.settle()

    def _grow(self, journey: Journey, stalled: bool) -> bool:
        """A sequence gets the blocks that it owns by now; True if one of them is a copy of the last one."""
        sequence, blocks = journey.sequence, self._map
        table = len(blocks.tables.get(sequence.id, ()))
        more = self._allocator.owned(sequence) // self._size - table
        partly = self._allocator.decodes.written_of(sequence) % self._size > 0
        writes = sequence.decoding and not stalled and table > 0 and partly
        while more + (copies := writes and blocks.shares_last(sequence.id)) > blocks.free:
            blocks.release(*self._leaving.popleft())
        if copies:
            blocks.copy_last(sequence.id)
        blocks.grow(sequence.id, more)
        return copies

    def _bands(self, journey: Journey, copied: bool) -> Bands:
        sequence = journey.sequence
        written, owned = self._allocator.decodes.written_of(sequence), self._allocator.owned(sequence)
        if copied:
            kept = written // self._size * self._size
            return bands_of(written, owned, journey.furthest, holding=MOVING, kept=kept)
        end = owned if sequence.id in self._undecided else journey.furthest
        return bands_of(written, owned, end, holding=DEAD if journey.done else USED)

    def _paint(self, sequence: int, old: Bands, new: Bands) -> Iterator[Paint]:
        """What has changed in the blocks that count to `sequence`, and all of those that do so only now."""
        size, blocks = self._size, self._map
        table, fresh = blocks.tables[sequence], blocks.fresh.get(sequence, set())
        for low, high, kind in differences(old, new):
            for at in range(low // size, -(-high // size)):
                if at not in fresh and blocks.owner(table[at]) == sequence:
                    yield self._within(sequence, table, at, low, high, kind)
        for at in sorted(fresh):
            for low, high, kind in differences((), new):
                if low < (at + 1) * size and high > at * size:
                    yield self._within(sequence, table, at, low, high, kind)

    def _within(self, sequence: int, table: list[int], at: int, low: int, high: int, kind: int) -> Paint:
        """That part of slots low..high-1 of a sequence which lies in entry number `at` of its table."""
        first, last = max(low, at * self._size), min(high, (at + 1) * self._size)
        return Paint((table[at] - at) * self._size + first, last - first, sequence, kind)
