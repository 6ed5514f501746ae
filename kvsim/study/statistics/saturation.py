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

    `growth` is how much of what arrived was left in the queue, on average, and `growth_error` its standard error;
    `saturated` says that this is no chance; `memory` is the correlation of one slice with the next.
    """

    growth: float
    growth_error: float
    saturated: bool
    memory: float

    @property
    def forgets(self) -> bool:
        """The run is long against the time over which its queue remembers, so that intervals may be trusted."""
        return self.memory <= MEMORY_LIMIT


def growth_shares(levels: ArrayLike, arrivals: ArrayLike) -> Array:
    """By how much the queue grows over the window as a share of the arrivals: what it rose from slice to slice.

    `levels` is the mean queue in equal slices (..., slices), `arrivals` how many came in the window (...). Where the
    queue grows its steps are those of a random walk, of which first and last say all.
    """
    steps = np.diff(np.asarray(levels, dtype=np.float64))
    growth: Array = steps.mean(axis=-1) * (steps.shape[-1] + 1) / _at_least_one(arrivals)
    return growth


def growth_errors(levels: ArrayLike, arrivals: ArrayLike) -> Array:
    """Standard errors of the same, by the steps of each run alone.

    Where the queue does not grow, steps undo one another, and the error is told too large: a test errs on the side of
    silence.
    """
    steps = np.diff(np.asarray(levels, dtype=np.float64))
    count = steps.shape[-1]
    errors: Array = steps.std(axis=-1, ddof=1) * np.sqrt(_SMOOTHED / count) * (count + 1) / _at_least_one(arrivals)
    return errors


def shares_grow(shares: ArrayLike, errors: ArrayLike) -> Truths:
    """Whether queues of these `growth_shares` and `growth_errors` grow: (..., replications) twice to (...).

    One-sided t test at `CHANCE`, with the steps of all replications; and the queue has to grow by `GROWTH_SHARE`. A
    test of the shares alone, which are few, sees a load of 1.2 in 3 of 5 studies of three replications; this one in
    all.
    """
    from scipy.special import stdtrit

    growth, spread = np.asarray(shares, dtype=np.float64), np.asarray(errors, dtype=np.float64)
    replications = growth.shape[-1]
    error = np.sqrt((spread * spread).sum(axis=-1)) / replications
    certain = float(stdtrit((SLICES - 2) * replications, 1 - CHANCE)) * error
    grows: Truths = (growth.mean(axis=-1) >= GROWTH_SHARE) & (growth.mean(axis=-1) > certain)
    return grows


def queue_grows(levels: ArrayLike, arrivals: ArrayLike) -> Truths:
    """The same of the mean queues themselves: (..., replications, slices) and (..., replications) to (...)."""
    return shares_grow(growth_shares(levels, arrivals), growth_errors(levels, arrivals))


def queue_memory(levels: ArrayLike) -> Array:
    """Correlation of one slice with the next, averaged over replications: (..., replications, slices) to (...)."""
    return np.asarray(lag_one(levels).mean(axis=-1))


def queue(waiting: ArrayLike, present: ArrayLike, arrivals: ArrayLike) -> Queue:
    """What the queue of some replications did: (replications, slices) twice, and (replications,).

    Those who wait tell whether it grows: who is served may become more at first in any run. Those who are present,
    waiting or served, tell how long it remembers.
    """
    shares, errors = growth_shares(waiting, arrivals), growth_errors(waiting, arrivals)
    return Queue(
        growth=float(shares.mean()),
        growth_error=float(np.sqrt((errors * errors).sum()) / errors.size),
        saturated=bool(shares_grow(shares, errors)),
        memory=float(queue_memory(present)),
    )


def _at_least_one(arrivals: ArrayLike) -> Array:
    return np.maximum(np.asarray(arrivals, dtype=np.float64), 1.0)
