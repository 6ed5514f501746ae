"""Percentiles with intervals: each replication, or batch, is a section of one large sample."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from kvsim.study.statistics.intervals import LEVEL, Array, Interval, t_quantile

BEYOND = 10
"""Independent samples that should lie beyond a percentile in each section, for its interval to be trusted.

Fewer leave the sections so skewed that intervals cover too rarely: tests/study/statistics/test_coverage.py.
"""


def independent_beyond(section: ArrayLike, threshold: float, percent: float) -> int:
    """How many samples lie beyond a percentile, neighbours counted once: a queue that is long is so for many in a row.

    `section` is in the order of arrival. The clusters of an extreme value index (runs estimator of Smith and Weissman,
    Journal of the Royal Statistical Society B 56, 1994). Beyond a percentile below the median is below it.
    """
    values = np.asarray(section, dtype=np.float64)
    beyond = values > threshold if percent >= 50 else values < threshold
    return int(np.count_nonzero(beyond[1:] & ~beyond[:-1]) + (beyond.size > 0 and beyond[0]))


def samples_needed(sections: Sequence[ArrayLike], pooled: float, percent: float) -> int | None:
    """None where each section has `BEYOND` independent samples beyond the percentile on average; else how many
    samples it should have."""
    sizes = [np.size(section) for section in sections]
    clusters = float(np.mean([independent_beyond(section, pooled, percent) for section in sections]))
    if clusters >= BEYOND:
        return None
    # Constant ones have none beyond; then the samples alone count.
    share = clusters / float(np.mean(sizes)) or 1 - max(percent, 100 - percent) / 100
    return int(np.ceil(round(BEYOND / share, 6)))


def pooled_and_sections(samples: ArrayLike, percent: float) -> tuple[Array, Array]:
    """The percentile of all samples, and of each section: (...) and (..., sections) from (..., sections, samples)."""
    values = np.asarray(samples, dtype=np.float64)
    pooled = np.percentile(values.reshape(*values.shape[:-2], -1), percent, axis=-1)
    return np.asarray(pooled), np.asarray(np.percentile(values, percent, axis=-1))


def spread_about(pooled: ArrayLike, sections: ArrayLike, level: float = LEVEL) -> Array:
    """Half the interval by sectioning: t times the root mean square distance of the sections, over sqrt(sections).

    About the percentile of the whole, which is less biased than the mean of the sections' (Asmussen and Glynn,
    Stochastic Simulation, section III.5). ValueError for a single section.
    """
    values = np.asarray(sections, dtype=np.float64)
    count = values.shape[-1]
    if count < 2:
        raise ValueError(f"sections must be at least 2 for an interval; got {count}")
    apart = values - np.asarray(pooled)[..., np.newaxis]
    half: Array = t_quantile(level, count - 1) * np.sqrt((apart * apart).sum(axis=-1) / (count - 1) / count)
    return half


def percentile_interval(sections: Sequence[ArrayLike], percent: float, level: float = LEVEL) -> Interval:
    """The percentile of all samples in all sections with its interval by sectioning; of a single section without.

    Sections may differ in length and none may be empty: ValueError.
    """
    arrays = [np.asarray(section, dtype=np.float64) for section in sections]
    if not arrays or not all(array.size for array in arrays):
        raise ValueError("sections must hold at least one, and each at least one sample")
    pooled = float(np.percentile(np.concatenate(arrays), percent))
    if len(arrays) < 2:
        return Interval(pooled, None, None, 1, level)
    half = float(spread_about(pooled, [np.percentile(array, percent) for array in arrays], level))
    return Interval(pooled, pooled - half, pooled + half, len(arrays), level)
