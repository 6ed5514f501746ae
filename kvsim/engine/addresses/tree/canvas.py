"""A picture of the pool, slot by slot, that tells what is different since somebody last looked."""

from array import array
from collections.abc import Iterator

import numpy as np

from kvsim.engine.addresses.bands import FREE
from kvsim.engine.addresses.layout import Paint


class Canvas:
    """Whose each slot is, and of which class: free at first. A slot that is put down twice is what came last."""

    def __init__(self, slots: int) -> None:
        self._owners = np.zeros(slots, dtype=np.int64)
        self._kinds = np.full(slots, FREE, dtype=np.int8)
        self._slots = array("q")
        """Those put down since the last look, and the lengths, owners and classes of their runs."""
        self._runs: list[tuple[int, int, int]] = []

    def put(self, slots: "array[int]", owner: int, kind: int) -> None:
        """These are of this class, for this sequence. Mutates."""
        self._slots.extend(slots)
        self._runs.append((len(slots), owner, kind))

    def changes(self) -> Iterator[Paint]:
        """What is different by what was put down since the last time, free slots first, by address. Mutates."""
        if not self._slots:
            self._runs.clear()
            return
        put, runs = np.array(self._slots), np.array(self._runs)
        touched = np.unique(put)
        owners, kinds = self._owners[touched], self._kinds[touched]
        self._owners[put], self._kinds[put] = np.repeat(runs[:, 1], runs[:, 0]), np.repeat(runs[:, 2], runs[:, 0])
        self._slots, self._runs = array("q"), []
        changed = touched[(self._owners[touched] != owners) | (self._kinds[touched] != kinds)]
        free = self._kinds[changed] == FREE
        for part in (changed[free], changed[~free]):
            yield from self._runs_of(part)

    def _runs_of(self, slots: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> Iterator[Paint]:
        """`slots`, rising, as runs of one owner and class."""
        owners, kinds = self._owners[slots], self._kinds[slots]
        breaks = (np.diff(slots) != 1) | (np.diff(owners) != 0) | (np.diff(kinds) != 0)
        first = 0
        for last in [*np.flatnonzero(breaks).tolist(), len(slots) - 1] if len(slots) else ():
            yield Paint(int(slots[first]), last - first + 1, int(owners[first]), int(kinds[first]))
            first = last + 1
