"""Where regions lie and how they come to lie elsewhere: placing, growing, moving by parts, sliding together."""

from kvsim.memory.addresses import AddressSpace, BuddySpace, Space
from kvsim.memory.books.written import WrittenBooks
from kvsim.request import Sequence
from kvsim.step import Ask, Blocked, Short

Region = tuple[int, int]
"""(start, length) in slots; the length is what was asked, without the rounding of the address space."""


class Placing(WrittenBooks):
    """The regions of an allocator, put where `fit` says (see `AddressSpace`, `BuddySpace`).

    A region that must grow does so in place where the hole right behind it is large enough; otherwise its written
    slots are copied to a new region, and both are held until the step is over.

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
        super().__init__()
        self.pool_slots = pool_slots
        self._space: Space = BuddySpace(pool_slots) if fit == "buddy" else AddressSpace(pool_slots, fit=fit, unit=unit)
        self._in_place = in_place
        self._parts = parts
        self._compaction = compaction
        self._regions: dict[int, Region] = {}
        self._owners: dict[int, Sequence] = {}
        """By id, as in `_regions`; a sequence is entered when the call that admits it succeeds."""
        self._sources: list[tuple[Region, int]] = []
        """Regions whose content is being copied away during this step, and whose; with `parts` one tensor at most."""
        self._moving = 0
        self._moves = 0
        """Regions given up for a new one in the latest acquire."""
        self._slides = 0
        """Regions with something written that slid down in it."""

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
        self._moves += 1
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
        self._moves += 1
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
        written = self.decodes.written_of(owner) if owner and now != start else 0
        self._slides += written > 0
        return written

    def _taken(self, length: int) -> int:
        start = self._space.take(length)
        assert start is not None
        return start
