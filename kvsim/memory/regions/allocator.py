"""One region of real addresses per sequence: what is taken, grown, moved and given back."""

from collections.abc import Iterable
from collections.abc import Sequence as Seq
from heapq import heappop, heappush
from typing import Any

from kvsim.errors import CheckError
from kvsim.memory.interface import Extent
from kvsim.memory.regions.placing import Placing, Region
from kvsim.memory.standing import StandingLeap
from kvsim.request import Sequence
from kvsim.step import Ask, Blocked, Chunk, Grant, PoolUse, Short

TABLE_ENTRY_BYTES = 16
"""A region is known by its address and its length, 64 bits each."""


class RegionAllocator(Placing):
    """One contiguous region per sequence; a subclass says how large (`capacity`, `last_growth`).

    A region is taken whole at admission, for all known tokens of the sequence; how it grows from there is told with
    `Placing`, which also takes the options.
    """

    has_holes = True

    def __init__(self, pool_slots: int, **how: Any) -> None:
        super().__init__(pool_slots, **how)
        self._due: list[tuple[int, int, Sequence]] = []
        """Heap of (clock at which the region is full, admission, sequence); entries of the past are skipped."""

    @property
    def most_slots(self) -> int:
        return self._space.most

    def owned(self, sequence: Sequence) -> int:
        return self._regions.get(sequence.id, (0, 0))[1]

    def external(self, need_slots: int) -> int:
        space = self._space
        return space.rounding + space.below(min(space.room(need_slots), space.free))

    def acquire(self, asks: Seq[Ask], *, decodes: bool = False) -> Grant | Short:
        wanted = [ask for ask in asks if ask.tokens > self.owned(ask.sequence)]
        if decodes and self._next_due() == self.decodes.clock:
            wanted += [Ask(s, s.origin + self.decodes.clock + 1) for s in self._all_due()]
            wanted.sort(key=lambda ask: ask.sequence.admission)
        if not wanted:
            return _GRANT
        before = self._space.snapshot(), self._regions.copy(), self._sources.copy(), self._moving
        copied, compacted = 0, list[Blocked]()
        self._moves = self._slides = 0
        for ask in wanted:
            got = self._grow(ask, compacted)
            if isinstance(got, Short):
                snapshot, self._regions, self._sources, self._moving = before
                self._space.restore(snapshot)
                return got
            copied += got
        upkeep = self.upkeep
        upkeep.allocations += len(self._regions) - len(before[1]) + self._moves
        # What a region leaves is given back when the step is over.
        upkeep.frees += self._moves
        upkeep.copies += self._moves + self._slides
        upkeep.table_bytes = max(upkeep.table_bytes, len(self._regions) * TABLE_ENTRY_BYTES)
        for ask in wanted:
            self._owners[ask.sequence.id] = ask.sequence
            if ask.sequence.decoding:
                self._watch(ask.sequence)
        return Grant(copied, compacted=tuple(compacted))

    def _watch(self, sequence: Sequence) -> None:
        heappush(self._due, (self.owned(sequence) - sequence.origin, sequence.admission, sequence))

    def _next_due(self) -> int | None:
        """The clock at which the next decoding sequence outgrows its region."""
        due = self._due
        while due:
            clock, admission, sequence = due[0]
            if self._stands(clock, admission, sequence):
                return clock
            heappop(due)
        return None

    def _stands(self, clock: int, admission: int, sequence: Sequence) -> bool:
        return (
            sequence.decoding
            and sequence.admission == admission
            and self._regions[sequence.id][1] - sequence.origin == clock
        )

    def _all_due(self) -> list[Sequence]:
        """Everyone due at this clock; they leave the heap only when they have grown or gone."""
        clock = self.decodes.clock
        entries = []
        while self._due and self._due[0][0] == clock:
            entries.append(heappop(self._due))
        standing = [entry for entry in entries if self._stands(*entry)]
        for entry in standing:
            heappush(self._due, entry)
        return [sequence for _, _, sequence in standing]

    def settle(self, chunks: Iterable[Chunk], *, stalled: bool = False) -> bool:
        if not stalled:
            self.decodes.advance()
        self._write(chunks)
        if not self._sources:
            return False
        for region, _ in self._sources:
            self._space.give(*region)
        self._sources.clear()
        self._moving = 0
        return True

    def begin_decode(self, sequence: Sequence) -> None:
        self._prefill_written -= sequence.written
        self.decodes.join(sequence)
        self._watch(sequence)

    def release(self, sequence: Sequence) -> None:
        region = self._regions.pop(sequence.id, None)
        if region is None:
            raise CheckError(f"request {sequence.id} gives back a region it does not own (a double free)")
        del self._owners[sequence.id]
        self._forget(sequence)
        self._space.give(*region)
        self.upkeep.frees += 1

    def leap(self, limit: int) -> StandingLeap:
        due = self._next_due()
        steps = limit if due is None else min(limit, due - self.decodes.clock)
        return StandingLeap(self.decodes, self.usage(), steps)

    def usage(self) -> PoolUse:
        used, moving = self.decodes.written + self._prefill_written, self._moving
        free, rounding, dead = self._space.free, self._space.rounding, self.dead
        unwritten = self.pool_slots - free - rounding - used - dead - moving
        return PoolUse(used, unwritten, dead, moving, 0, free, self._space.largest, rounding)

    def extents(self) -> Seq[Extent]:
        copying = {number for (_, length), number in self._sources if self._copied(number, length)}
        own = [self._extent(number, region, number in copying, False) for number, region in self._regions.items()]
        # With `parts` it is the tensor's second place that is copied to; what nobody copies any more counts the same.
        return own + [
            self._extent(number, region, not self._copied(number, region[1]), True) for region, number in self._sources
        ]

    def _copied(self, number: int, length: int) -> bool:
        """A source of so many slots is being copied to the region that this sequence has now."""
        owner = self._owners.get(number)
        return self._parts == 1 and owner is not None and self.decodes.written_of(owner) == length

    def _extent(self, number: int, region: Region, moving: bool, beside: bool) -> Extent:
        start, length = region
        return Extent(number, start, length, self._space.room(length) - length, moving, beside)

    def audit(self, live: Iterable[Sequence]) -> None:
        space = self._space
        owners = [s for s in live if s.id in self._regions]
        if len(owners) != len(self._regions):
            strays = sorted(set(self._regions) - {s.id for s in owners})
            raise CheckError(f"{self.name}: regions of requests {strays} are held by no live request (a leak)")
        regions = [*self._regions.values(), *(source for source, _ in self._sources)]
        edge = 0
        for start, room in sorted([*((start, space.room(length)) for start, length in regions), *space.holes]):
            if start != edge:
                what = "belong to nobody (a leak)" if start > edge else "have two owners"
                raise CheckError(f"{self.name}: slots {min(start, edge)}..{max(start, edge) - 1} {what}")
            edge = start + room
        if edge != self.pool_slots or sum(room for _, room in space.holes) != space.free:
            raise CheckError(f"{self.name}: regions and holes do not add up to the pool's {self.pool_slots} slots")
        rounding = self.pool_slots - space.free - sum(length for _, length in regions)
        if rounding != space.rounding:
            raise CheckError(f"{self.name}: {space.rounding} slots count as rounding, regions leave {rounding}")
        written = sum(self.decodes.written_of(s) for s in owners)
        if written != self.decodes.written + self._prefill_written + self.dead:
            raise CheckError(
                f"{self.name}: {self.usage().used} slots are counted as used and {self.dead} as dead, "
                f"live requests have written {written}"
            )


_GRANT = Grant()
