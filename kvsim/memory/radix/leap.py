"""Decode steps of rows of slots over a tree, in slots that are free."""

from kvsim.memory.phases import PhaseLeap, Phases
from kvsim.step import PoolUse


class RowsLeap(PhaseLeap):
    """Steps from `clock` on in which nothing is evicted and nothing comes to the tree; `use`: before the first.

    A subclass does them.
    """

    __slots__ = ("_use",)

    def __init__(self, phases: Phases, clock: int, steps: int, use: PoolUse, *, others: int) -> None:
        super().__init__(phases, clock, steps, others=others)
        self._use = use

    def use_at(self, step: int) -> PoolUse:
        """What is cached stays."""
        use, written = self._use, self._phases.count * step
        taken = self._phases.blocks(self._clock, step + 1) * self._phases.size
        free, unwritten = use.free - taken, use.unwritten + taken - written
        return use._replace(used=use.used + written, unwritten=unwritten, free=free, largest_hole=free)


def unevicted(phases: Phases, clock: int, limit: int, pages: int) -> int:
    """How many of `limit` steps `pages` free pages serve with a page for everyone before each, whoever needs it.

    So many are asked for, and where they are not there, something may be evicted.
    """
    return 0 if pages < phases.count else min(limit, 1 + phases.served(clock, limit, pages - phases.count))
