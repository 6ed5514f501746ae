"""An address space as a sorted list of holes, and which hole a region is put into."""

from bisect import bisect_left, bisect_right
from itertools import chain

from kvsim.errors import CheckError
from kvsim.memory.addresses.interface import Space

FITS = ("first", "best", "worst", "next")
"""How a hole is chosen here; `buddy` is a space of its own."""


class AddressSpace(Space):
    """Holes never touch: neighbours merge when room is given back. A region lies at the beginning of its hole.

    `fit` says which of the holes that are large enough:
    - `first`: the lowest;
    - `best`: the smallest, of several the lowest;
    - `worst`: the largest, of several the lowest;
    - `next`: the first from where the last region that was taken ended, going round at the end (Knuth's roving
      pointer). The hole in which that place lies comes first, from its beginning.

    A region takes a multiple of `unit` slots.

    Holes number about as many as the running requests, where a sorted list beats cleverer structures.
    """

    def __init__(self, size: int, *, fit: str = "first", unit: int = 1) -> None:
        if fit not in FITS:
            raise ValueError(f"fit is {fit}; it must be one of {', '.join(FITS)}")
        if unit < 1:
            raise ValueError(f"unit is {unit}; a region takes a multiple of at least one slot")
        self.size = size
        self.fit = fit
        self.unit = unit
        self.free = size
        self.rounding = 0
        self._holes: list[tuple[int, int]] = [(0, size)]
        self._rover = 0
        """Where the last region that was taken ended."""

    @property
    def most(self) -> int:
        return self.size // self.unit * self.unit

    @property
    def holes(self) -> list[tuple[int, int]]:
        return self._holes

    def room(self, length: int) -> int:
        return -(-length // self.unit) * self.unit

    def take(self, length: int) -> int | None:
        room = self.room(length)
        index = self._choose(room)
        if index is None:
            return None
        start = self._holes[index][0]
        self._shrink(index, room)
        self.rounding += room - length
        self._rover = start + room
        return start

    def _choose(self, room: int) -> int | None:
        """The index of the hole into which `room` slots go."""
        holes = self._holes
        if self.fit in ("first", "next"):
            first = self._hole_at(self._rover) if self.fit == "next" else 0
            order = chain(range(first, len(holes)), range(first))
            return next((index for index in order if holes[index][1] >= room), None)
        sign = 1 if self.fit == "best" else -1
        fitting = ((sign * hole, index) for index, (_, hole) in enumerate(holes) if hole >= room)
        return min(fitting, default=(0, None))[1]

    def _hole_at(self, address: int) -> int:
        """The index of the hole in which `address` lies, or of the first one behind it."""
        index = bisect_right(self._holes, (address, self.size))
        if index and sum(self._holes[index - 1]) > address:
            return index - 1
        return index

    def extend(self, start: int, length: int, longer: int) -> bool:
        old = self.room(length)
        more = self.room(longer) - old
        if more:
            behind = start + old
            index = bisect_left(self._holes, (behind, 0))
            if index == len(self._holes):
                return False
            at, hole = self._holes[index]
            if at != behind or hole < more:
                return False
            self._shrink(index, more)
        self.rounding += more - (longer - length)
        return True

    def _shrink(self, index: int, room: int) -> None:
        start, hole = self._holes[index]
        if room == hole:
            del self._holes[index]
        else:
            self._holes[index] = (start + room, hole - room)
        self.free -= room

    def give(self, start: int, length: int) -> None:
        holes = self._holes
        room = self.room(length)
        index = bisect_left(holes, (start, 0))
        end = start + room
        below = holes[index - 1] if index else None
        above = holes[index] if index < len(holes) else None
        if (below and sum(below) > start) or (above and above[0] < end):
            raise CheckError(f"slots {start}..{end - 1} are given back while some of them are free (a double free)")
        first, last = index, index
        if below and sum(below) == start:
            first, start = index - 1, below[0]
        if above and above[0] == end:
            last, end = index + 1, end + above[1]
        holes[first:last] = [(start, end - start)]
        self.free += room
        self.rounding -= room - length

    @property
    def largest(self) -> int:
        return max((hole for _, hole in self._holes), default=0)

    def below(self, length: int) -> int:
        return sum(hole for _, hole in self._holes if hole < length)

    def snapshot(self) -> tuple[int, int, int, list[tuple[int, int]]]:
        return self.free, self.rounding, self._rover, self._holes.copy()

    def restore(self, snapshot: tuple[int, int, int, list[tuple[int, int]]]) -> None:
        self.free, self.rounding, self._rover, self._holes = snapshot
