"""What `contiguous` and `reserve` share: one region of real addresses per sequence."""

from abc import abstractmethod
from collections.abc import Iterable
from collections.abc import Sequence as Seq
from heapq import heappop, heappush

from kvsim.errors import CheckError
from kvsim.memory.address_space import AddressSpace
from kvsim.memory.interface import Allocator, Leap
from kvsim.request import Sequence
from kvsim.step import Ask, Chunk, DecodeSet, Grant, PoolUse, Short

Region = tuple[int, int]
"""(start, length) in slots."""


class RegionAllocator(Allocator):
    """One contiguous region per sequence, at the lowest address that fits; a subclass says how large.

    A region is taken whole at admission, for all known tokens of the sequence. One that must grow does so in place
    where the hole right behind it is large enough; otherwise its written slots are copied to a new region, and both
    are held until the step is over.
    """

    has_holes = True

    def __init__(self, pool_slots: int) -> None:
        self.pool_slots = pool_slots
        self.decodes = DecodeSet()
        self._space = AddressSpace(pool_slots)
        self._regions: dict[int, Region] = {}
        self._sources: list[Region] = []
        """Regions whose content is being copied away during this step."""
        self._moving = 0
        self._prefill_written = 0
        self._due: list[tuple[int, int, Sequence]] = []
        """Heap of (clock at which the region is full, admission, sequence); entries of the past are skipped."""

    @abstractmethod
    def capacity(self, tokens: int) -> int: ...

    def owned(self, sequence: Sequence) -> int:
        return self._regions.get(sequence.id, (0, 0))[1]

    def external(self, need_slots: int) -> int:
        return self._space.below(min(need_slots, self._space.free))

    def acquire(self, asks: Seq[Ask], *, decodes: bool = False) -> Grant | Short:
        wanted = [ask for ask in asks if ask.tokens > self.owned(ask.sequence)]
        if decodes and self._next_due() == self.decodes.clock:
            wanted += [Ask(s, s.origin + self.decodes.clock + 1) for s in self._all_due()]
            wanted.sort(key=lambda ask: ask.sequence.admission)
        if not wanted:
            return _GRANT
        before = self._space.snapshot(), self._regions.copy(), self._sources.copy(), self._moving
        copied = 0
        for ask in wanted:
            got = self._grow(ask)
            if isinstance(got, Short):
                snapshot, self._regions, self._sources, self._moving = before
                self._space.restore(snapshot)
                return got
            copied += got
        for ask in wanted:
            if ask.sequence.decoding:
                self._watch(ask.sequence)
        return Grant(copied)

    def _grow(self, ask: Ask) -> int | Short:
        """Slots copied to make room for `ask`, or why there is none."""
        sequence, space = ask.sequence, self._space
        need = self.capacity(sequence.reach if ask.admit else ask.tokens)
        region = self._regions.get(sequence.id)
        if region and space.take_at(region[0] + region[1], need - region[1]):
            self._regions[sequence.id] = (region[0], need)
            return 0
        start = space.take_first(need)
        if start is None:
            cause = "capacity" if space.free < need else "fragmentation"
            return Short(cause, need, space.free, space.largest)
        self._regions[sequence.id] = (start, need)
        if not region:
            return 0
        written = self.decodes.written_of(sequence)
        self._sources.append(region)
        self._moving += written
        return written

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

    def settle(self, chunks: Iterable[Chunk]) -> bool:
        self.decodes.advance()
        for chunk in chunks:
            chunk.sequence.written += chunk.tokens
            self._prefill_written += chunk.tokens
        if not self._sources:
            return False
        for start, length in self._sources:
            self._space.give(start, length)
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
        if sequence.decoding:
            self.decodes.leave(sequence)
        else:
            self._prefill_written -= sequence.written
        self._space.give(*region)

    def leap(self, limit: int) -> "RegionLeap":
        due = self._next_due()
        steps = limit if due is None else min(limit, due - self.decodes.clock)
        return RegionLeap(self, steps)

    def usage(self) -> PoolUse:
        used = self.decodes.written + self._prefill_written
        free = self._space.free
        return PoolUse(
            used, self.pool_slots - free - used - self._moving, 0, self._moving, 0, free, self._space.largest
        )

    def audit(self, live: Iterable[Sequence]) -> None:
        owners = [s for s in live if s.id in self._regions]
        if len(owners) != len(self._regions):
            strays = sorted(set(self._regions) - {s.id for s in owners})
            raise CheckError(f"{self.name}: regions of requests {strays} are held by no live request (a leak)")
        taken = sorted([*self._regions.values(), *self._sources, *self._space.holes])
        edge = 0
        for start, length in taken:
            if start != edge:
                what = "belong to nobody (a leak)" if start > edge else "have two owners"
                raise CheckError(f"{self.name}: slots {min(start, edge)}..{max(start, edge) - 1} {what}")
            edge = start + length
        if edge != self.pool_slots or sum(room for _, room in self._space.holes) != self._space.free:
            raise CheckError(f"{self.name}: regions and holes do not add up to the pool's {self.pool_slots} slots")
        written = sum(self.decodes.written_of(s) for s in owners)
        if written != self.decodes.written + self._prefill_written:
            raise CheckError(
                f"{self.name}: {self.usage().used} slots are counted as used, live requests have written {written}"
            )


class RegionLeap(Leap):
    """Decode steps inside the regions as they are: what is not written shrinks by one slot per sequence and step."""

    __slots__ = ("_allocator", "_count", "_unwritten", "_use")

    def __init__(self, allocator: RegionAllocator, steps: int) -> None:
        self._allocator = allocator
        self.steps = steps
        self._count = allocator.decodes.count
        self._use = allocator.usage()
        self.bound = self._unwritten = self._use.unwritten

    def use_at(self, step: int) -> PoolUse:
        written = self._count * step
        return self._use._replace(used=self._use.used + written, unwritten=self._unwritten - written)

    def unwritten_sum(self, steps: int, a: int, b: int) -> int:
        ones = steps
        firsts = steps * (steps - 1) // 2
        squares = (steps - 1) * steps * (2 * steps - 1) // 6
        level, fall = self._unwritten, self._count
        return a * level * ones + (b * level - a * fall) * firsts - b * fall * squares

    def unwritten_peak(self, first: int, last: int) -> int:
        return self._unwritten - self._count * first

    def apply(self, steps: int) -> None:
        self._allocator.decodes.advance(steps)


_GRANT = Grant()
