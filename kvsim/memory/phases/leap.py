"""The leap of a pool in whose blocks everybody writes at a phase of its own."""

from kvsim.memory.interface import Leap
from kvsim.memory.phases.interface import Phases


class PhasedLeap(Leap):
    """Decode steps from `clock` on: who takes a block when, and what is not written yet, follow from the phases.

    `retired_unwritten` slots belong to those who have ended and not yet left; they stay as they are. A subclass says
    how many steps there are, where the slots are in each, and does them.
    """

    __slots__ = ("_clock", "_phases", "_retired")

    def __init__(self, phases: Phases, clock: int, retired_unwritten: int) -> None:
        self._phases = phases
        self._clock = clock
        self._retired = retired_unwritten
        self.bound = phases.count * phases.size + retired_unwritten

    def unwritten_sum(self, steps: int, a: int, b: int) -> int:
        """See `Leap`."""
        total = self._phases.unwritten_sum(self._clock, steps, a, b)
        return total + self._retired * (a * steps + b * (steps * (steps - 1) // 2))

    def unwritten_peak(self, first: int, last: int) -> int:
        """See `Leap`."""
        return self._phases.unwritten_peak(self._clock + first, last - first) + self._retired
