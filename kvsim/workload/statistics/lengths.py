"""Lengths in a few numbers, and how two kinds of them go together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

PERCENTILES = (50, 95, 99)


@dataclass(frozen=True)
class Spread:
    """A sample: its mean and its percentiles, straight lines between neighbours in rank (numpy's default)."""

    mean: float
    p50: float
    p95: float
    p99: float
    max: float


def spread(values: "Sequence[int] | Sequence[float] | NDArray[Any]") -> Spread | None:
    """Of the values; None where there are none."""
    import numpy as np

    if not len(values):
        return None
    sample = np.asarray(values)
    p50, p95, p99 = (float(value) for value in np.percentile(sample, PERCENTILES))
    return Spread(float(sample.mean()), p50, p95, p99, float(sample.max()))


def weighted_spread(values: "NDArray[Any]", weights: "NDArray[Any]") -> Spread | None:
    """Of a law: the smallest value that at least so much of the weight does not exceed; None without weight."""
    import numpy as np

    total = weights.sum()
    if not total > 0:
        return None
    order = np.argsort(values, kind="stable")
    values, weights = values[order], weights[order]
    reached = np.cumsum(weights) / total
    at = np.minimum(np.searchsorted(reached, [percent / 100 for percent in PERCENTILES]), len(values) - 1)
    p50, p95, p99 = (float(value) for value in values[at])
    most = float(values[weights > 0][-1])
    return Spread(float((values * weights).sum() / total), p50, p95, p99, most)


def rank_correlation(first: Sequence[int], second: Sequence[int]) -> float | None:
    """Spearman's: the correlation of ranks, ties at their mean rank; None where one of them does not vary."""
    import numpy as np

    if len(first) < 2:
        return None
    one, other = _ranks(np.asarray(first)), _ranks(np.asarray(second))
    if one.std() == 0 or other.std() == 0:
        return None
    return float(np.corrcoef(one, other)[0, 1])


def _ranks(values: "NDArray[Any]") -> "NDArray[Any]":
    import numpy as np

    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    means: NDArray[Any] = (ends - (counts - 1) / 2)[inverse]
    return means
