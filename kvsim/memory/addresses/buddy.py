"""The binary buddy system: blocks of power-of-two length at addresses that are multiples of it (Knuth, 2.5)."""

from bisect import bisect_left, insort

from kvsim.errors import CheckError
from kvsim.memory.addresses.interface import Space


class BuddySpace(Space):
    """A region lies in the smallest block that is long enough; of several free ones in the lowest.

    A longer block is halved until it is the right one; the two halves are buddies, and merge as soon as both are
    free. A size that is no power of two is the greedy sum of powers of two from address 0, so that no region is longer
    than the largest of them. Holes are free blocks: two that lie side by side without being buddies stay two.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.free = size
        self.rounding = 0
        self._blocks: list[list[int]] = [[] for _ in range(size.bit_length())]
        """Starts of the free blocks, by order: a block of order k has 2**k slots."""
        start = 0
        for order in reversed(range(size.bit_length())):
            if size >> order & 1:
                self._blocks[order].append(start)
                start += 1 << order

    @property
    def most(self) -> int:
        return 1 << len(self._blocks) - 1

    @property
    def holes(self) -> list[tuple[int, int]]:
        return sorted((start, 1 << order) for order, starts in enumerate(self._blocks) for start in starts)

    def room(self, length: int) -> int:
        return power_of_two(length)

    def take(self, length: int) -> int | None:
        order = _order(length)
        for larger in range(order, len(self._blocks)):
            if self._blocks[larger]:
                break
        else:
            return None
        start = self._blocks[larger].pop(0)
        for half in range(order, larger):
            self._blocks[half].append(start + (1 << half))
        self.free -= 1 << order
        self.rounding += (1 << order) - length
        return start

    def extend(self, start: int, length: int, longer: int) -> bool:
        """Within its own block a region grows free of charge; beyond, by merging with the upper buddies, all free."""
        order, goal = _order(length), _order(longer)
        if start % (1 << goal):
            return False
        uppers = [(half, start + (1 << half)) for half in range(order, goal)]
        if not all(self._is_free(half, upper) for half, upper in uppers):
            return False
        for half, upper in uppers:
            self._remove(half, upper)
        more = (1 << goal) - (1 << order)
        self.free -= more
        self.rounding += more - (longer - length)
        return True

    def give(self, start: int, length: int) -> None:
        order = _order(length)
        room, end = 1 << order, start + (1 << order)
        if any(self._is_free(larger, start >> larger << larger) for larger in range(order, len(self._blocks))) or any(
            bisect_left(starts, start) < bisect_left(starts, end) for starts in self._blocks[:order]
        ):
            raise CheckError(f"slots {start}..{end - 1} are given back while some of them are free (a double free)")
        while self._is_free(order, start ^ (1 << order)):
            self._remove(order, start ^ (1 << order))
            start &= ~(1 << order)
            order += 1
        insort(self._blocks[order], start)
        self.free += room
        self.rounding -= room - length

    def _is_free(self, order: int, start: int) -> bool:
        """Whether there is a free block of exactly this order there."""
        if order >= len(self._blocks):
            return False
        starts = self._blocks[order]
        index = bisect_left(starts, start)
        return index < len(starts) and starts[index] == start

    def _remove(self, order: int, start: int) -> None:
        starts = self._blocks[order]
        del starts[bisect_left(starts, start)]

    @property
    def largest(self) -> int:
        return max((1 << order for order, starts in enumerate(self._blocks) if starts), default=0)

    def below(self, length: int) -> int:
        return sum(len(starts) << order for order, starts in enumerate(self._blocks) if 1 << order < length)

    def snapshot(self) -> tuple[int, int, list[list[int]]]:
        return self.free, self.rounding, [starts.copy() for starts in self._blocks]

    def restore(self, snapshot: tuple[int, int, list[list[int]]]) -> None:
        self.free, self.rounding, self._blocks = snapshot


def power_of_two(length: int) -> int:
    """The smallest power of two that is at least `length` (1 or more)."""
    return 1 << _order(length)


def _order(length: int) -> int:
    """The order of the smallest block that holds `length` slots."""
    return (length - 1).bit_length()
