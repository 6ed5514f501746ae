"""One region of real addresses per sequence: what is taken, grown, moved and given back."""

from abc import abstractmethod
from collections.abc import Iterable
from collections.abc import Sequence as Seq
from heapq import heappop, heappush

from kvsim.errors import CheckError
from kvsim.memory.addresses import AddressSpace, BuddySpace, Space
from kvsim.memory.interface import Allocator, Extent
from kvsim.memory.regions.leap import RegionLeap
from kvsim.request import Sequence
from kvsim.step import Ask, Blocked, Chunk, DecodeSet, Grant, PoolUse, Short, Upkeep

Region = tuple[int, int]
"""(start, length) in slots; the length is what was asked, without the rounding of the address space."""

TABLE_ENTRY_BYTES = 16
"""A region is known by its address and its length, 64 bits each."""


class RegionAllocator(Allocator):
    """One contiguous region per sequence; a subclass says how large, `fit` where (see `AddressSpace`, `BuddySpace`).

    A region is taken whole at admission, for all known tokens of the sequence. One that must grow does so in place
    where the hole right behind it is large enough; otherwise its written slots are copied to a new region, and both
    are held until the step is over.

    - `in_place` off: growing always copies.
    - `parts` above 1 (with `in_place` off): a region is that many tensors of equal size, and growing copies them one
      after another, request after request. Only one tensor is in two places at a time, so that what a step holds in
      addition is the largest of them, ceil(written / parts) slots of one request. The other tensors of a region move
      into what it leaves itself: growing needs room for the new region and for the one tensor once the old region is
      given back, and what a `Short` says is free counts the old region. (In this model the tensors of a region stay
      side by side.)
    - `unit`: the address space rounds regions up to a multiple of it.
    - `compaction`: where no hole fits although enough is free in all, every region slides down, in the order of the
      addresses and the one that must grow last, and then it is tried once more. The written slots of all that moved
      are copied. They never show as `moving`, for a slide has no second place.

    What the address space rounds up belongs to nobody and is `external`.
    """

    has_holes = True

    def __init__(
        self,
        pool_slots: int,
        *,
        fit: str = "first",
        unit: int = 1,
        in_place: bool = True,
        parts: int = 1,
        compaction: bool = False,
    ) -> None:
        if fit == "buddy" and unit != 1:
            raise ValueError(f"regions are rounded up to {unit} slots, but fit buddy rounds up to powers of two itself")
        if fit == "buddy" and compaction:
            raise ValueError("compaction is on, but the blocks of fit buddy have fixed places; use another fit")
        if parts < 1 or (in_place and parts > 1):
            raise ValueError(f"parts is {parts}; it must be at least 1, and 1 where regions grow in place")
        self.pool_slots = pool_slots
        self.decodes = DecodeSet()
        self.upkeep = Upkeep()
        self._space: Space = BuddySpace(pool_slots) if fit == "buddy" else AddressSpace(pool_slots, fit=fit, unit=unit)
        self._in_place = in_place
        self._parts = parts
        self._compaction = compaction
        self._regions: dict[int, Region] = {}
        self._owners: dict[int, Sequence] = {}
        """By id, as in `_regions`; a sequence is entered when the call that admits it succeeds."""
        self._sources: list[tuple[Region, int]] = []
        """Regions whose content is being copied away during this step, and by whom; with `parts` one tensor at most."""
        self._moving = 0
        self._prefill_written = 0
        self._retired: set[int] = set()
        """Sequences that have ended and not yet left."""
        self._dead = 0
        self._due: list[tuple[int, int, Sequence]] = []
        """Heap of (clock at which the region is full, admission, sequence); entries of the past are skipped."""

    @property
    def most_slots(self) -> int:
        return self._space.most

    @abstractmethod
    def capacity(self, tokens: int) -> int: ...

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
        copied, compacted, copies = 0, list[Blocked](), 0
        for ask in wanted:
            got = self._grow(ask, compacted)
            if isinstance(got, Short):
                snapshot, self._regions, self._sources, self._moving = before
                self._space.restore(snapshot)
                return got
            copied += got
            copies += got > 0
        new = sum(ask.sequence.id not in before[1] for ask in wanted)
        upkeep = self.upkeep
        upkeep.allocations += new + copies
        upkeep.copies += copies
        upkeep.table_bytes = max(upkeep.table_bytes, len(self._regions) * TABLE_ENTRY_BYTES)
        for ask in wanted:
            self._owners[ask.sequence.id] = ask.sequence
            if ask.sequence.decoding:
                self._watch(ask.sequence)
        return Grant(copied, compacted=tuple(compacted))

    def _grow(self, ask: Ask, compacted: list[Blocked]) -> int | Short:
        """Slots copied to make room for `ask`, or why there is none. Mutates; notes a compaction in `compacted`."""
        sequence = ask.sequence
        need = self.capacity(sequence.reach if ask.admit else ask.tokens)
        got = self._place(sequence, need)
        if not self._compaction or not isinstance(got, Short) or got.cause != "fragmentation":
            return got
        slid = self._slide(sequence)
        compacted.append(Blocked(sequence, got, "compact"))
        again = self._place(sequence, need)
        return again if isinstance(again, Short) else slid + again

    def _place(self, sequence: Sequence, need: int) -> int | Short:
        """Give `sequence` a region of `need` slots: slots copied for it, or why not, and then nothing has changed."""
        space, region = self._space, self._regions.get(sequence.id)
        if region and self._parts > 1:
            return self._move_by_parts(sequence, region, need)
        if region and self._in_place and space.extend(*region, need):
            self._regions[sequence.id] = (region[0], need)
            return 0
        start = space.take(need)
        if start is None:
            room = space.room(need)
            return Short("capacity" if space.free < room else "fragmentation", room, space.free, space.largest)
        self._regions[sequence.id] = (start, need)
        if not region:
            return 0
        written = self.decodes.written_of(sequence)
        self._sources.append((region, sequence.id))
        self._moving += written
        return written

    def _move_by_parts(self, sequence: Sequence, region: Region, need: int) -> int | Short:
        space = self._space
        written = self.decodes.written_of(sequence)
        part = -(-written // self._parts)
        # One request after another: a tensor's second place serves again, if it is large enough.
        larger = part > self._moving
        before = space.snapshot()
        space.give(*region)
        if larger:
            for held, _ in self._sources:
                space.give(*held)
        room = space.room(need) + (space.room(part) if larger else 0)
        free, largest = space.free, space.largest
        start = space.take(need)
        second = space.take(part) if larger and start is not None else None
        if start is None or (larger and second is None):
            space.restore(before)
            return Short("capacity" if free < room else "fragmentation", room, free, largest)
        self._regions[sequence.id] = (start, need)
        if second is not None:
            self._sources = [((second, part), sequence.id)]
            self._moving = part
        return written

    def _slide(self, last: Sequence) -> int:
        """Slide everything down, the region of `last` to the end; the written slots of the regions that moved."""
        space, regions = self._space, self._regions
        order = sorted(regions, key=lambda number: (number == last.id, regions[number]))
        for region in [*regions.values(), *(source for source, _ in self._sources)]:
            space.give(*region)
        others = order[:-1] if last.id in regions else order
        copied = sum(self._put(number) for number in others)
        self._sources = [((self._taken(length), length), number) for (_, length), number in sorted(self._sources)]
        return copied + sum(self._put(number) for number in order[len(others) :])

    def _put(self, number: int) -> int:
        """Take the region of a request anew, in a space that is one hole; its written slots if that moves it."""
        start, length = self._regions[number]
        now = self._taken(length)
        self._regions[number] = (now, length)
        owner = self._owners.get(number)
        return self.decodes.written_of(owner) if owner and now != start else 0

    def _taken(self, length: int) -> int:
        start = self._space.take(length)
        assert start is not None
        return start

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
        for chunk in chunks:
            chunk.sequence.written += chunk.tokens
            self._prefill_written += chunk.tokens
        if not self._sources:
            return False
        for region, _ in self._sources:
            self._space.give(*region)
        self.upkeep.frees += len(self._sources)
        self._sources.clear()
        self._moving = 0
        return True

    def land(self, sequence: Sequence) -> None:
        self._prefill_written += sequence.written

    def begin_decode(self, sequence: Sequence) -> None:
        self._prefill_written -= sequence.written
        self.decodes.join(sequence)
        self._watch(sequence)

    def retire(self, sequence: Sequence) -> None:
        self.decodes.leave(sequence)
        self._retired.add(sequence.id)
        self._dead += sequence.written

    def release(self, sequence: Sequence) -> None:
        region = self._regions.pop(sequence.id, None)
        if region is None:
            raise CheckError(f"request {sequence.id} gives back a region it does not own (a double free)")
        del self._owners[sequence.id]
        if sequence.decoding:
            self.decodes.leave(sequence)
        elif sequence.id in self._retired:
            self._retired.discard(sequence.id)
            self._dead -= sequence.written
        else:
            self._prefill_written -= sequence.written
        self._space.give(*region)
        self.upkeep.frees += 1

    def leap(self, limit: int) -> RegionLeap:
        due = self._next_due()
        steps = limit if due is None else min(limit, due - self.decodes.clock)
        return RegionLeap(self.decodes, self.usage(), steps)

    def usage(self) -> PoolUse:
        used, moving = self.decodes.written + self._prefill_written, self._moving
        free, rounding, dead = self._space.free, self._space.rounding, self._dead
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
        if written != self.decodes.written + self._prefill_written + self._dead:
            raise CheckError(
                f"{self.name}: {self.usage().used} slots are counted as used and {self._dead} as dead, "
                f"live requests have written {written}"
            )


_GRANT = Grant()
