"""A real address space: which slots are free, as a sorted list of holes."""

from bisect import bisect_left

from kvsim.errors import CheckError


class AddressSpace:
    """Slots 0..size-1 with their holes. Holes never touch: neighbours merge when room is given back.

    Holes number about as many as the running requests, where a sorted list beats cleverer structures.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.free = size
        self.holes: list[tuple[int, int]] = [(0, size)]
        """(start, length), by start."""

    def take_first(self, length: int) -> int | None:
        """First fit: the lowest address where `length` slots are free, now taken; None if there is no such hole."""
        for index, (start, room) in enumerate(self.holes):
            if room >= length:
                self._shrink(index, start, room, length)
                return start
        return None

    def take_at(self, start: int, length: int) -> bool:
        """Take `length` slots at exactly `start`, if they are the beginning of a hole."""
        index = bisect_left(self.holes, (start, 0))
        if index == len(self.holes):
            return False
        at, room = self.holes[index]
        if at != start or room < length:
            return False
        self._shrink(index, at, room, length)
        return True

    def _shrink(self, index: int, start: int, room: int, length: int) -> None:
        if room == length:
            del self.holes[index]
        else:
            self.holes[index] = (start + length, room - length)
        self.free -= length

    def give(self, start: int, length: int) -> None:
        """Give back a region; raises CheckError if any of it is free already (a double free)."""
        holes = self.holes
        index = bisect_left(holes, (start, 0))
        end = start + length
        below = holes[index - 1] if index else None
        above = holes[index] if index < len(holes) else None
        if (below and below[0] + below[1] > start) or (above and above[0] < end):
            raise CheckError(f"slots {start}..{end - 1} are given back while some of them are free (a double free)")
        first, last = index, index
        if below and below[0] + below[1] == start:
            first, start = index - 1, below[0]
        if above and above[0] == end:
            last, end = index + 1, end + above[1]
        holes[first:last] = [(start, end - start)]
        self.free += length

    @property
    def largest(self) -> int:
        """The largest hole in slots (0 when full)."""
        return max((room for _, room in self.holes), default=0)

    def below(self, length: int) -> int:
        """Free slots in holes smaller than `length`."""
        return sum(room for _, room in self.holes if room < length)

    def snapshot(self) -> tuple[int, list[tuple[int, int]]]:
        """What `restore` needs to undo everything done since."""
        return self.free, self.holes.copy()

    def restore(self, snapshot: tuple[int, list[tuple[int, int]]]) -> None:
        """Undo everything done since `snapshot` was taken."""
        self.free, self.holes = snapshot
