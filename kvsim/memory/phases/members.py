"""Who takes a new block when, by name: for pools whose blocks are known one by one."""

from collections.abc import Collection, Iterator
from operator import attrgetter

from kvsim.memory.phases.interface import Phases
from kvsim.request import Sequence

_ADMISSION = attrgetter("admission")


class PhaseMembers:
    """The decoding sequences themselves beside their number in each phase (`phases`), which it keeps up to date."""

    __slots__ = ("_at", "phases")

    def __init__(self, phases: Phases) -> None:
        self.phases = phases
        self._at: list[dict[int, Sequence]] = [{} for _ in range(phases.size)]

    def __iter__(self) -> Iterator[Sequence]:
        """All of them, phase by phase."""
        for members in self._at:
            yield from members.values()

    def add(self, sequence: Sequence) -> None:
        """It has begun to decode. Mutates; O(1)."""
        phase = -sequence.origin % self.phases.size
        self.phases.add(phase)
        self._at[phase][sequence.id] = sequence

    def remove(self, sequence: Sequence) -> None:
        """It decodes no more. Mutates; O(1)."""
        phase = -sequence.origin % self.phases.size
        self.phases.remove(phase)
        del self._at[phase][sequence.id]

    def crossing(self, clock: int) -> Collection[Sequence]:
        """Those who take a block in the step at `clock`; the step before it fills the block that they have."""
        return self._at[clock % self.phases.size].values()

    def in_order(self, clock: int, steps: int) -> list[Sequence]:
        """Who takes a block in `steps` steps from `clock` on: step by step, in admission order, each once."""
        found: list[Sequence] = []
        for step in range(min(steps, self.phases.size)):
            found += sorted(self.crossing(clock + step), key=_ADMISSION)
        return found

    def strays(self) -> int:
        """How many are kept in a phase that is not theirs."""
        size = self.phases.size
        places = ((phase, s) for phase, members in enumerate(self._at) for s in members.values())
        return sum(not s.decoding or -s.origin % size != phase for phase, s in places)
