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


ESTIMATED_TO = 0.6
"""Up to this correlation of slices the run that would forget is told within a factor of two on M/M/1 queues; beyond it,
where a run spans next to none of the queue's time scales, it is told too short."""

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

    @property
    def times_as_long(self) -> float:
        """How many times as long a run would forget; the least it takes where the memory is above `ESTIMATED_TO`."""
        return 1.0 if self.forgets else times_as_long(self.memory)


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

    growth = np.asarray(shares, dtype=np.float64)
    freedom = (SLICES - 2) * growth.shape[-1]
    certain = float(stdtrit(freedom, 1 - CHANCE)) * _error_of_mean(np.asarray(errors, dtype=np.float64))
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
        growth_error=float(_error_of_mean(errors)),
        saturated=bool(shares_grow(shares, errors)),
        memory=float(queue_memory(present)),
    )


def times_as_long(memory: float, limit: float = MEMORY_LIMIT) -> float:
    """How many times as long a run would have slices that correlate by `limit`, where they correlate by `memory`.

    For an exponential memory: means over slices of x time constants correlate by (1 - e^-x)^2 / (2 (x - 1 + e^-x)) with
    those of the next, and x grows as the run does. Above `ESTIMATED_TO` the answer is that of `ESTIMATED_TO`.
    ValueError where a correlation is not between 0 and 1.
    """
    if not (0 < memory <= 1 and 0 < limit < 1):
        raise ValueError(f"memory {memory}, limit {limit}: correlations must lie between 0 and 1")
    return _time_constants(limit) / _time_constants(min(memory, ESTIMATED_TO))


def _time_constants(correlation: float) -> float:
    """Time constants of an exponential memory in a slice whose mean correlates so much with that of the next."""
    from scipy.optimize import brentq

    def apart(x: float) -> float:
        return float(np.expm1(-x)) ** 2 / (2 * (x + float(np.expm1(-x)))) - correlation

    return float(brentq(apart, 1e-3, 1 / correlation))


def _error_of_mean(errors: Array) -> Array:
    """The standard error of the mean of numbers that have these: (..., numbers) to (...)."""
    return np.asarray(np.sqrt((errors * errors).sum(axis=-1)) / errors.shape[-1])


def _at_least_one(arrivals: ArrayLike) -> Array:
    return np.maximum(np.asarray(arrivals, dtype=np.float64), 1.0)
