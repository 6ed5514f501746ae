"""One trace is one realisation: intervals from drawing its sessions anew, each with all its requests."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kvsim.study.statistics.intervals import LEVEL, Array, Interval

DRAWS = 1000
"""Bootstrap samples of an interval, as Efron and Tibshirani ask for percentile intervals."""

_AT_ONCE = 1 << 22
"""Weights that are held at once while percentiles are drawn."""


@dataclass(frozen=True, slots=True)
class Sessions:
    """Which session each request is part of (numbers from 0, one for each request), and how often each draw has each.

    `draws` is (draws, sessions). All variants and metrics of a comparison share one, so that differences are paired.
    """

    of_request: NDArray[np.int64]
    draws: NDArray[np.int64]

    @property
    def count(self) -> int:
        """How many sessions there are."""
        return int(self.draws.shape[1])


def session_draws(count: int, generator: np.random.Generator, draws: int = DRAWS) -> NDArray[np.int64]:
    """How often each of `count` sessions comes when as many are drawn with replacement: (draws, sessions)."""
    if count < 1:
        raise ValueError(f"count must be at least 1; got {count}")
    return generator.multinomial(count, np.full(count, 1 / count), size=draws).astype(np.int64)


def drawn_sessions(of_request: ArrayLike, generator: np.random.Generator, draws: int = DRAWS) -> Sessions:
    """The sessions of some requests, whatever they are called, drawn. ValueError where there is no request."""
    numbers = np.unique(np.asarray(of_request), return_inverse=True)[1].astype(np.int64)
    return Sessions(numbers, session_draws(int(numbers.max(initial=-1)) + 1, generator, draws))


def resampled_ratio(over: ArrayLike, under: ArrayLike, sessions: Sessions) -> Array:
    """In each draw: the sum of one number over the sum of another, each given for every request. A mean is over / 1.

    NaN where nothing is below.
    """
    count = sessions.count
    above = np.bincount(sessions.of_request, np.asarray(over, dtype=np.float64), count)
    below = np.bincount(sessions.of_request, np.asarray(under, dtype=np.float64), count)
    sums, whole = sessions.draws @ above, sessions.draws @ below
    ratio: Array = np.divide(sums, whole, out=np.full(len(sums), np.nan), where=whole != 0)
    return ratio


def resampled_percentiles(values: ArrayLike, percents: Sequence[float], sessions: Sessions) -> Array:
    """In each draw: the smallest value that each of `percents` of the drawn requests do not exceed: (percents, draws).

    NaN values do not count.
    """
    numbers = np.asarray(values, dtype=np.float64)
    order = np.argsort(numbers)[: np.count_nonzero(~np.isnan(numbers))]
    ranked, owners = numbers[order], sessions.of_request[order]
    found = np.full((len(percents), len(sessions.draws)), np.nan)
    if not ranked.size:
        return found
    rows = max(1, _AT_ONCE // ranked.size)
    for first in range(0, len(sessions.draws), rows):
        reached = np.cumsum(sessions.draws[first : first + rows][:, owners], axis=1)
        for place, percent in enumerate(percents):
            wanted = np.maximum(np.ceil(reached[:, -1] * percent / 100), 1)
            places = (reached < wanted[:, np.newaxis]).sum(axis=1)
            some = reached[:, -1] > 0
            found[place, first : first + rows][some] = ranked[places[some]]
    return found


def bootstrap_interval(estimate: float, resampled: ArrayLike, samples: int, level: float = LEVEL) -> Interval:
    """The interval that the middle `level` of the draws spans; without bounds where fewer than two have a value."""
    values = np.asarray(resampled, dtype=np.float64)
    values = values[np.isfinite(values)]
    if values.size < 2 or samples < 2:
        return Interval(estimate, None, None, samples, level)
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return Interval(estimate, min(float(low), estimate), max(float(high), estimate), samples, level)
