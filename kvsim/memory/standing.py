"""The leap of an allocator in which nobody gets any room while it lasts."""

from kvsim.memory.interface import Leap
from kvsim.step import DecodeSet, PoolUse


class StandingLeap(Leap):
    """Decode steps in the room that everyone has: what is not written shrinks by one slot per sequence and step."""

    __slots__ = ("_count", "_decodes", "_unwritten", "_use")

    def __init__(self, decodes: DecodeSet, use: PoolUse, steps: int) -> None:
        self.steps = steps
        self._decodes = decodes
        self._count = decodes.count
        self._use = use
        self.bound = self._unwritten = use.unwritten

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
        self._decodes.advance(steps)
