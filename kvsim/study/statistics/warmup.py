"""Where the warm-up ends: MSER-5."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from kvsim.study.statistics.intervals import Array

BATCH = 5
"""Values that are averaged first; the 5 of MSER-5."""


@dataclass(frozen=True, slots=True)
class Cut:
    """How many values from the start to leave out. `settled` is False where half the series was not enough."""

    values: int
    settled: bool


def mser_statistic(series: ArrayLike, batch: int = BATCH) -> Array:
    """The squared standard error of what would be left, by number of batches cut; batches over the last axis.

    MSER(d) = sum over the batches from d on of (x - mean)^2 / (n - d)^2, here for all d below n / 2: beyond, few
    values are left and the statistic may fall for that alone (White, Simulation 69, 1997).
    """
    values = np.asarray(series, dtype=np.float64)
    count = values.shape[-1] // batch
    means = values[..., : count * batch].reshape(*values.shape[:-1], count, batch).mean(axis=-1)
    # Sums from the back, of the distance to the whole's mean: squares of large levels would cancel.
    apart = means - means.mean(axis=-1, keepdims=True)
    sums = np.cumsum(apart[..., ::-1], axis=-1)[..., ::-1]
    squares = np.cumsum((apart * apart)[..., ::-1], axis=-1)[..., ::-1]
    left = count - np.arange(count)
    statistic: Array = (np.maximum(squares - sums * sums / left, 0.0) / (left * left))[..., : (count + 1) // 2]
    return statistic


def mser5(series: ArrayLike) -> Cut:
    """Where a series has settled: the cut after which the mean of the rest is known best.

    The average of several replications tells it better than one of them. Fewer than ten values are left whole, and
    said not to have settled.
    """
    values = np.asarray(series, dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(f"series must have one axis; got {values.ndim}")
    if values.size < 2 * BATCH:
        return Cut(0, False)
    statistic = mser_statistic(values)
    best = int(np.argmin(statistic))
    return Cut(best * BATCH, best < statistic.size - 1)


def mser5_time(time_s: ArrayLike, series: ArrayLike) -> tuple[float, bool]:
    """The same where each value has a time: when the first value that is kept comes (seconds), and `settled`."""
    cut = mser5(series)
    times = np.asarray(time_s, dtype=np.float64)
    return (float(times[cut.values]) if cut.values else 0.0), cut.settled
