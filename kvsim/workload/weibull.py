"""The Weibull law's moments, which arrivals and lengths both are given by."""

from math import exp, expm1, lgamma, sqrt

from kvsim.workload.arguments import check_positive

_SHAPES = (0.05, 200.0)
"""Beyond these the law is a handful of giants or a constant; the moments overflow or vanish soon after."""


def mean_of_shape(shape: float) -> float:
    """The mean at scale 1: Gamma(1 + 1 / shape)."""
    return exp(lgamma(1 + 1 / shape))


def cv_of_shape(shape: float) -> float:
    """Standard deviation over mean: sqrt(Gamma(1 + 2 / shape) / Gamma(1 + 1 / shape)**2 - 1)."""
    return sqrt(expm1(lgamma(1 + 2 / shape) - 2 * lgamma(1 + 1 / shape)))


def shape_of_cv(cv: float) -> float:
    """The shape whose law has this coefficient of variation, to the last digits of a float. ValueError out of range."""
    check_positive("cv", cv)
    low, high = _SHAPES
    least, most = cv_of_shape(high), cv_of_shape(low)
    if not least <= cv <= most:
        raise ValueError(f"cv: must be from {least:.2g} to {most:.2g} for a Weibull law; got {cv!r}")
    while high - low > 1e-15 * high:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if cv_of_shape(middle) > cv:
            low = middle
        else:
            high = middle
    return low
