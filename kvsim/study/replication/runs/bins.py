"""Levels over time in a fixed number of bins, however long a run becomes: bins double in width when they run out."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kvsim.request import PS_PER_S
from kvsim.study.statistics.intervals import Array

MOST = 4096
"""Bins that are kept at most; from the first doubling on at least half as many are in use."""

FIRST_PS = 10**9
"""Width of a bin at the start: a millisecond, below the time of a step."""


class TimeBins:
    """The time integral of some level, bin by bin from time zero: exact from edge to edge of bins."""

    def __init__(self) -> None:
        self.width_ps = FIRST_PS
        self._areas = np.zeros(MOST)
        self._end_ps = 0

    def add(self, start_ps: NDArray[np.int64], duration_ps: NDArray[np.int64], levels: NDArray[Any]) -> None:
        """The level stands at so much for so long; stretches are in order of time, and the level 0 between. Mutates."""
        if not len(start_ps):
            return
        end_ps = start_ps + duration_ps
        self._end_ps = max(self._end_ps, int(end_ps[-1]))
        while self._end_ps > self.width_ps * MOST:
            self._areas[: MOST // 2] = self._areas[0::2] + self._areas[1::2]
            self._areas[MOST // 2 :] = 0.0
            self.width_ps *= 2
        times = np.empty(2 * len(start_ps))
        times[0::2], times[1::2] = start_ps, end_ps
        area = np.zeros(2 * len(start_ps))
        area[1::2] = np.cumsum(levels * duration_ps.astype(np.float64))
        area[2::2] = area[1:-1:2]
        first, last = int(start_ps[0]) // self.width_ps, min(MOST, int(end_ps[-1]) // self.width_ps + 1)
        edges = np.arange(first, last + 1) * float(self.width_ps)
        self._areas[first:last] += np.diff(np.interp(edges, times, area))

    def means(self, start_ps: int, end_ps: int, slices: int) -> Array:
        """The mean level in each of equally long slices of a stretch of time; 0 after the last one that was added."""
        edges = np.arange(MOST + 1) * float(self.width_ps)
        whole = np.concatenate([[0.0], np.cumsum(self._areas)])
        wanted = np.linspace(start_ps, end_ps, slices + 1)
        means: Array = np.diff(np.interp(wanted, edges, whole)) / np.diff(wanted)
        return means

    def series(self, end_ps: int) -> tuple[Array, Array]:
        """When each bin begins (seconds) and the mean level in it, for the whole bins before `end_ps`."""
        count = min(MOST, end_ps // self.width_ps)
        times_s = np.arange(count, dtype=np.float64) * (self.width_ps / PS_PER_S)
        return np.asarray(times_s, dtype=np.float64), self._areas[:count] / self.width_ps
