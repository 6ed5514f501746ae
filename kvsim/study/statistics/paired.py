"""Differences between two settings that saw the same traffic, and what they amount to."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from kvsim.study.statistics.intervals import LEVEL, Array, Interval, half_width, mean_interval

Better = Literal["lower", "higher"]
"""Which direction of a metric is good."""

Verdict = Literal["better", "worse", "higher", "lower", "same", "not distinguishable", "saturated", "not compared"]


@dataclass(frozen=True, slots=True)
class Difference:
    """This setting minus the baseline, replication by replication.

    `variance_ratio` is the variance of the paired difference over that of unpaired ones: below 1 the same random
    streams paid off, and 0.1 means that an unpaired study needs ten times the runs. None where neither varies.
    """

    interval: Interval
    verdict: Verdict
    variance_ratio: float | None = None


def variance_ratio(samples: ArrayLike, baseline: ArrayLike) -> Array:
    """var(x - y) / (var(x) + var(y)) over the last axis: 1 for independent ones; NaN where neither varies."""
    ours, theirs = np.asarray(samples, dtype=np.float64), np.asarray(baseline, dtype=np.float64)
    apart = ours.var(axis=-1, ddof=1) + theirs.var(axis=-1, ddof=1)
    together = (ours - theirs).var(axis=-1, ddof=1)
    ratio: Array = np.divide(together, apart, out=np.full_like(np.asarray(apart), np.nan), where=apart > 0)
    return ratio


def paired_half_width(samples: ArrayLike, baseline: ArrayLike, level: float = LEVEL) -> Array:
    """Half the t interval of the mean difference over the last axis, of pairs on the same random streams."""
    half: Array = half_width(np.asarray(samples, dtype=np.float64) - np.asarray(baseline, dtype=np.float64), level)
    return half


def paired_difference(
    samples: ArrayLike, baseline: ArrayLike, better: Better | None = None, level: float = LEVEL
) -> Difference:
    """The mean difference of pairs with its t interval and verdict. ValueError where they are no pairs."""
    ours, theirs = np.asarray(samples, dtype=np.float64), np.asarray(baseline, dtype=np.float64)
    if ours.shape != theirs.shape:
        raise ValueError(f"samples and baseline must be as many; got {ours.size} and {theirs.size}")
    interval = mean_interval(ours - theirs, level)
    return Difference(interval, verdict(interval, better), told_ratio(ours, theirs))


def told_ratio(samples: Array, baseline: Array) -> float | None:
    """The variance ratio of one pair of settings; None where neither varies, or nothing is known of it."""
    if samples.size < 2:
        return None
    ratio = float(variance_ratio(samples, baseline))
    return None if np.isnan(ratio) else ratio


def verdict(interval: Interval, better: Better | None) -> Verdict:
    """What a difference to the baseline amounts to: better or worse where one direction is, else higher or lower.

    "same" where there is none at all in any replication, "not distinguishable" where the interval holds zero.
    """
    low, high = interval.low, interval.high
    if low is None or high is None:
        return "not compared"
    if low == high == 0:
        return "same"
    if low <= 0 <= high:
        return "not distinguishable"
    direction: Better = "higher" if low > 0 else "lower"
    if better is None:
        return direction
    return "better" if direction == better else "worse"
