"""The leap of a pool of blocks, as far as the phases alone know it: when blocks are taken, and what is not written."""

from kvsim.memory.interface import Leap
from kvsim.memory.phases.interface import Phases


def weights(first: int, last: int, a: int, b: int) -> int:
    """Sum over steps first..last-1 of a + b x step."""
    return a * (last - first) + b * (last * (last - 1) // 2 - first * (first - 1) // 2)


class PhaseLeap(Leap):
    """`steps` decode steps from `clock` on; `others` slots belong to those that do not decode and stay unwritten."""

    __slots__ = ("_clock", "_others", "_phases")

    def __init__(self, phases: Phases, clock: int, steps: int, *, others: int) -> None:
        self.steps = steps
        self.bound = phases.count * phases.size + others
        self._phases = phases
        self._clock = clock
        self._others = others

    def unwritten_sum(self, steps: int, a: int, b: int) -> int:
        total = self._phases.unwritten_sum(self._clock, steps, a, b)
        return total + self._others * weights(0, steps, a, b) if self._others else total

    def unwritten_peak(self, first: int, last: int) -> int:
        return self._phases.unwritten_peak(self._clock + first, last - first) + self._others
