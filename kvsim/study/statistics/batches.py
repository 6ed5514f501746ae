"""One long run as a row of batches: their means, whether these are independent enough, and arrival windows."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kvsim.study.statistics.intervals import LEVEL, Array, Interval, mean_interval

BATCHES = 20
"""Batches of an interval: more add little to its degrees of freedom (Schmeiser, Operations Research 30, 1982)."""

FINER = 5
"""The correlation is estimated on batches so many times smaller, of which there are so many more."""

CORRELATION_LIMIT = 0.2
"""Where the means of neighbouring batches correlate more, an interval from them is a fifth too short, and more."""


def batch_means(series: ArrayLike, batches: int = BATCHES) -> Array:
    """The means of equally long batches of the last axis; what does not fill them is left out at its beginning.

    ValueError where there are fewer values than batches.
    """
    values = np.asarray(series, dtype=np.float64)
    length = values.shape[-1] // batches
    if not length:
        raise ValueError(f"series must hold at least one value for each of {batches} batches; got {values.shape[-1]}")
    kept = values[..., values.shape[-1] - batches * length :]
    means: Array = kept.reshape(*values.shape[:-1], batches, length).mean(axis=-1)
    return means


def lag_one(means: ArrayLike) -> Array:
    """The correlation of neighbours on the last axis; 0 where nothing varies.

    Freed of its bias of about -(1 + 4 r) / n (Kendall, Biometrika 41, 1954). With axes before it, one for each row.
    """
    values = np.asarray(means, dtype=np.float64)
    count = values.shape[-1]
    apart = values - values.mean(axis=-1, keepdims=True)
    whole = (apart * apart).sum(axis=-1)
    both = (apart[..., 1:] * apart[..., :-1]).sum(axis=-1)
    found = np.divide(both, whole, out=np.zeros_like(both), where=whole > 0)
    return np.where(whole > 0, np.minimum((count * found + 1) / (count - 4), 1.0), 0.0)


def of_larger_batches(correlation: ArrayLike, times: int) -> Array:
    """What the correlation of neighbours becomes in batches so many `times` as large, if it decays geometrically.

    That of sums of m values of a first-order autoregressive series: r (1 + r + ... + r^(m-1))^2 over their variance,
    m + 2 ((m - 1) r + (m - 2) r^2 + ... + r^(m-1)).
    """
    r = np.clip(np.asarray(correlation, dtype=np.float64), 0.0, 1.0)[..., np.newaxis]
    lags = np.arange(times)
    powers = r**lags
    variance = times + 2 * ((times - lags[1:]) * powers[..., 1:]).sum(axis=-1)
    larger: Array = r[..., 0] * powers.sum(axis=-1) ** 2 / variance
    return larger


def batch_correlation(series: ArrayLike, batches: int = BATCHES) -> Array:
    """How much the means of neighbouring batches correlate, estimated on batches `FINER` times smaller.

    Axes before the last are series of their own. ValueError where there are too few values for the small batches.
    """
    return of_larger_batches(lag_one(batch_means(series, batches * FINER)), FINER)


def batch_interval(series: ArrayLike, batches: int = BATCHES, level: float = LEVEL) -> tuple[Interval, float]:
    """The mean of one long stationary series with the t interval of its batch means, and their correlation.

    Beyond `CORRELATION_LIMIT` the run is too short for an interval.
    """
    return mean_interval(batch_means(series, batches), level), float(batch_correlation(series, batches))


def arrival_windows(arrival_s: ArrayLike, window_s: tuple[float, float], windows: int) -> NDArray[np.int64]:
    """Which of some equally long windows each request arrives in, from 0; -1 for those outside, both ends included.

    What is then taken of the requests of a window counts whenever they end: it is drained.
    """
    arrivals = np.asarray(arrival_s, dtype=np.float64)
    start, end = window_s
    places = np.clip(((arrivals - start) / (end - start) * windows).astype(np.int64), 0, windows - 1)
    return np.where((arrivals >= start) & (arrivals <= end), places, -1)
