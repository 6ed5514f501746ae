"""A number from its parts: shares of a whole, ratios, and the spread of many values."""

from array import array
from collections.abc import Sequence as Seq

from kvsim.metrics.histogram import PERCENTILES
from kvsim.request import PS_PER_S
from kvsim.step import CLASSES


def shares(amounts: Seq[int], whole: int) -> dict[str, float | None]:
    """Each class as a fraction of `whole`; None for all when there was no time to measure."""
    return {name: ratio(amount, whole) for name, amount in zip(CLASSES, amounts, strict=True)}


def spread(values_ps: "array[int] | array[float]") -> dict[str, float] | None:
    """Mean, percentiles (linear between the two nearest values) and maximum in seconds; None without values.

    May leave the array in order. Mutates.
    """
    if not values_ps:
        return None
    values = _in_order(values_ps)
    return {
        "mean": sum(values) / len(values) / PS_PER_S,
        **{f"p{p}": _percentile(values, p) / PS_PER_S for p in PERCENTILES},
        "max": values[-1] / PS_PER_S,
    }


_MANY = 1 << 16
"""From so many values on, a sorted list of them would take more memory than numpy, and more time than to load it."""


def _in_order(values: "array[int] | array[float]") -> Seq[float]:
    if len(values) < _MANY:
        return sorted(values)
    import numpy as np

    np.frombuffer(values, dtype=values.typecode).sort()
    return values


def _percentile(ordered: Seq[float], percent: int) -> float:
    rank, rest = divmod(percent * (len(ordered) - 1), 100)
    low = ordered[rank]
    return low if not rest else low + (ordered[rank + 1] - low) * rest / 100


def ratio(amount: int, whole: int) -> float | None:
    """One over the other; None where there is nothing to divide by."""
    return amount / whole if whole else None
