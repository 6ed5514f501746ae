"""Whether the queue grows without end, and whether runs are long against what their queue remembers."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kvsim.study.statistics.batches import lag_one
from kvsim.study.statistics.intervals import Array

SLICES = 20
"""Equally long parts of the measured window in which the mean queue is known."""

CHANCE = 0.01
"""How often a queue that does not grow may be called growing."""

GROWTH_SHARE = 0.01
"""A queue that grows by less than this share of what arrives is served all but completely."""

MEMORY_LIMIT = 0.3
"""Where slices next to each other correlate more, a run spans too few of the queue's own time scales.

A slice is a twentieth of the run; 0.3 is what an exponential memory of a 24th of the run leaves of one slice to the
next. How intervals fare on both sides of it is in tests/study/statistics/test_coverage.py.
"""


_SMOOTHED = 1.5
"""Steps between means of a Brownian motion over neighbouring slices have variance 2/3 and covariance 1/6, so that their
sum varies 3/2 times as much as if they were independent."""

Truths = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Queue:
    """What the queue did over the measured window of some replications.

    `growth` is how much of what arrived was left in the queue, on average; `saturated` that this is no chance;
    `memory` the correlation of one slice with the next.
    """

    growth: float
    saturated: bool
    memory: float

    @property
    def forgets(self) -> bool:
        """The run is long against the time over which its queue remembers, so that intervals may be trusted."""
        return self.memory <= MEMORY_LIMIT


def growth_shares(levels: ArrayLike, arrivals: ArrayLike) -> Array:
    """By how much the queue grows over the window as a share of the arrivals: its least-squares line, end less start.

    `levels` is the mean queue in equal slices (..., slices), `arrivals` how many came in the window (...).
    """
    values = np.asarray(levels, dtype=np.float64)
    slices = values.shape[-1]
    places = np.arange(slices) - (slices - 1) / 2
    slopes = (values * places).sum(axis=-1) / (places * places).sum()
    growth: Array = slopes * slices / np.maximum(np.asarray(arrivals, dtype=np.float64), 1.0)
    return growth


def queue_grows(levels: ArrayLike, arrivals: ArrayLike) -> Truths:
    """Whether the queue grows, by trend: (..., replications, slices) and (..., replications) to (...).

    One-sided t test at `CHANCE` of the growth over replications, which are independent. Of a single run: of the steps
    from slice to slice, which are those of a random walk where the queue grows; where it does not, they undo one
    another, and the test errs on the side of silence. And the queue has to grow by `GROWTH_SHARE`.
    """
    values = np.asarray(levels, dtype=np.float64)
    shares = growth_shares(values, arrivals)
    if values.shape[-2] > 1:
        return shares_grow(shares)
    steps = np.diff(values[..., 0, :], axis=-1)
    grows: Truths = (shares.mean(axis=-1) >= GROWTH_SHARE) & _certainly_above_0(steps, _SMOOTHED)
    return grows


def shares_grow(shares: ArrayLike) -> Truths:
    """The same of the growth of two replications or more: (..., replications) to (...)."""
    values = np.asarray(shares, dtype=np.float64)
    grows: Truths = (values.mean(axis=-1) >= GROWTH_SHARE) & _certainly_above_0(values, 1.0)
    return grows


def _certainly_above_0(samples: Array, inflation: float) -> Truths:
    from scipy.special import stdtrit

    count = samples.shape[-1]
    error = samples.std(axis=-1, ddof=1) * np.sqrt(inflation / count)
    certain: Truths = samples.mean(axis=-1) > error * float(stdtrit(count - 1, 1 - CHANCE))
    return certain


def queue_memory(levels: ArrayLike) -> Array:
    """Correlation of one slice with the next, averaged over replications: (..., replications, slices) to (...)."""
    return np.asarray(lag_one(levels).mean(axis=-1))


def queue(waiting: ArrayLike, present: ArrayLike, arrivals: ArrayLike) -> Queue:
    """What the queue of some replications did: (replications, slices) twice, and (replications,).

    Those who wait tell whether it grows: who is served may become more at first in any run. Those who are present,
    waiting or served, tell how long it remembers.
    """
    return Queue(
        growth=float(growth_shares(waiting, arrivals).mean()),
        saturated=bool(queue_grows(waiting, arrivals)),
        memory=float(queue_memory(present)),
    )
