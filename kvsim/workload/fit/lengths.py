"""Length laws fitted to a sample of token counts, each with its distance from it.

The distance is Kolmogorov's: the largest gap between the two cumulative shares. Laws are continuous and rounded to
whole tokens, so the law's share up to k tokens is taken at k + 1/2.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

GRID = 100
"""Steps of a quantile grid: percentiles, the minimum and the maximum included."""


@dataclass(frozen=True)
class LengthFit:
    """One law: its name, its parameters in plain values, and its distance."""

    law: str
    parameters: dict[str, Any]
    ks: float


def fit_lengths(sample: Sequence[int]) -> list[LengthFit]:
    """All laws, in the order of trust: the quantile grid, the mixture, then single families by distance.

    `sample` has at least one count. A sample of one value has no other law than the grid.
    """
    import numpy as np

    values = np.asarray(sample)
    grid = [float(value) for value in np.percentile(values, np.linspace(0, 100, GRID + 1))]
    fits = [LengthFit("quantiles", {"quantiles": grid}, distance(values, _grid_share(grid)))]
    if values.min() == values.max():
        return fits
    from kvsim.workload.fit.mixture import fit_mixture

    parts = fit_mixture(np.log(values))
    fits.append(LengthFit("mixture", {"parts": parts}, distance(values, _mixture_share(parts))))
    single = (_lognormal(values), _exponential(values), _gamma(values), _weibull(values))
    return fits + sorted((fit for fit in single if fit is not None), key=lambda fit: fit.ks)


def distance(values: "NDArray[Any]", share: "Callable[[NDArray[Any]], NDArray[Any]]") -> float:
    """Kolmogorov's distance between counts and a law's cumulative `share`, rounding included."""
    import numpy as np

    counts, times = np.unique(values, return_counts=True)
    upto = np.cumsum(times) / len(values)
    before = upto - times / len(values)
    gaps = np.abs(upto - share(counts + 0.5)), np.abs(before - share(counts - 0.5))
    return float(max(gap.max() for gap in gaps))


def _grid_share(grid: list[float]) -> "Callable[[NDArray[Any]], NDArray[Any]]":
    import numpy as np

    values, shares = np.array(grid), np.linspace(0, 1, len(grid))

    def share(at: "NDArray[Any]") -> "NDArray[Any]":
        # Straight lines between quantiles; where many are equal, the share rises at once.
        upper = np.searchsorted(values, at, side="right")
        lower = np.clip(upper - 1, 0, len(values) - 1)
        following = np.clip(upper, 0, len(values) - 1)
        width = values[following] - values[lower]
        part = np.where(width > 0, (at - values[lower]) / np.where(width > 0, width, 1), 0.0)
        found: NDArray[Any] = shares[lower] + part * (shares[following] - shares[lower])
        return np.where(upper == 0, 0.0, found)

    return share


def _mixture_share(parts: list[dict[str, float]]) -> "Callable[[NDArray[Any]], NDArray[Any]]":
    import numpy as np
    from scipy.special import ndtr

    def share(at: "NDArray[Any]") -> "NDArray[Any]":
        logs = np.log(np.maximum(at, 1e-9))
        found: NDArray[Any] = sum(part["weight"] * ndtr((logs - part["mu"]) / part["sigma"]) for part in parts)
        return found

    return share


def _lognormal(values: "NDArray[Any]") -> LengthFit:
    import numpy as np

    logs = np.log(values)
    part = {"weight": 1.0, "mu": float(logs.mean()), "sigma": float(logs.std())}
    return LengthFit("lognormal", {"mu": part["mu"], "sigma": part["sigma"]}, distance(values, _mixture_share([part])))


def _exponential(values: "NDArray[Any]") -> LengthFit:
    import numpy as np

    mean = float(values.mean())
    return LengthFit("exponential", {"mean": mean}, distance(values, lambda at: -np.expm1(-np.maximum(at, 0) / mean)))


def _gamma(values: "NDArray[Any]") -> LengthFit | None:
    """Of greatest likelihood."""
    import numpy as np
    from scipy.special import gammainc

    shape, mean = gamma_shape(values), float(values.mean())
    if shape is None:
        return None
    law = LengthFit("gamma", {"mean": mean, "cv": shape**-0.5}, 0.0)
    return replace(law, ks=distance(values, lambda at: gammainc(shape, np.maximum(at, 0) * shape / mean)))


def _weibull(values: "NDArray[Any]") -> LengthFit | None:
    """Of greatest likelihood."""
    import numpy as np

    found = weibull_shape_and_scale(values)
    if found is None:
        return None
    shape, scale = found
    law = LengthFit("weibull", {"shape": shape, "scale": scale}, 0.0)
    return replace(law, ks=distance(values, lambda at: -np.expm1(-((np.maximum(at, 0) / scale) ** shape))))


def gamma_shape(values: "NDArray[Any]") -> float | None:
    """The shape of greatest likelihood: ln(k) - digamma(k) = ln(mean) - mean(ln).

    Values are above 0; None where they hardly vary.
    """
    import numpy as np
    from scipy.special import digamma

    gap = float(np.log(values.mean()) - np.log(values).mean())
    return _shape(lambda log_k: log_k - float(digamma(np.exp(log_k))) - gap)


def weibull_shape_and_scale(values: "NDArray[Any]") -> tuple[float, float] | None:
    """Of greatest likelihood; values are above 0. None where they hardly vary."""
    import numpy as np

    logs = np.log(values)
    top = logs.max()

    def slope(log_k: float) -> float:
        k = np.exp(log_k)
        weights = np.exp(k * (logs - top))
        return float((weights * logs).sum() / weights.sum() - 1 / k - logs.mean())

    shape = _shape(slope)
    if shape is None:
        return None
    return shape, float(np.exp(top + np.log(np.exp(shape * (logs - top)).mean()) / shape))


def _shape(slope: Callable[[float], float]) -> float | None:
    """Where the likelihood's slope over the logarithm of the shape is 0; None where that lies beyond all use."""
    from math import exp

    from scipy.optimize import brentq

    low, high = _LOG_SHAPES
    return exp(brentq(slope, low, high)) if slope(low) * slope(high) < 0 else None


_LOG_SHAPES = (-8.0, 14.0)
"""Between which the logarithm of a shape lies: CVs from a thousandth to some hundreds."""
