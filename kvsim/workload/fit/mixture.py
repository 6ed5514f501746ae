"""Mixtures of normal laws, fitted to logarithms by expectation and maximisation."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

PARTS = 3
LEAST_SIGMA = 0.03
"""A narrower part would be a spike that a cap left, with a likelihood without bounds."""
_ROUNDS = 400
_ENOUGH = 1e-8
"""Gain of the mean log-likelihood below which it stops."""
_MOST_VALUES = 10_000
"""Quantiles that stand for a larger sample: they say the same, and cost the same for a million."""


def fit_mixture(logs: "NDArray[Any]", parts: int = PARTS) -> list[dict[str, float]]:
    """Weight, mu and sigma of each part, by mu. Begins at the sample's quantiles and draws nothing."""
    import numpy as np

    values = np.sort(logs)
    if len(values) > _MOST_VALUES:
        values = values[np.linspace(0, len(values) - 1, _MOST_VALUES).astype(int)]
    edges = np.array_split(values, parts)
    mu = np.array([edge.mean() if len(edge) else values.mean() for edge in edges])
    sigma = np.full(parts, max(float(values.std()) / parts, LEAST_SIGMA))
    weight = np.full(parts, 1 / parts)
    last = -np.inf
    for _ in range(_ROUNDS):
        scores = np.log(weight) - np.log(sigma) - ((values[:, None] - mu) / sigma) ** 2 / 2
        top = scores.max(axis=1, keepdims=True)
        shares = np.exp(scores - top)
        sums = shares.sum(axis=1, keepdims=True)
        shares /= sums
        mass = np.maximum(shares.sum(axis=0), 1e-12)
        weight = mass / mass.sum()
        mu = (shares * values[:, None]).sum(axis=0) / mass
        variance = (shares * (values[:, None] - mu) ** 2).sum(axis=0) / mass
        sigma = np.maximum(np.sqrt(variance), LEAST_SIGMA)
        likelihood = float((top + np.log(sums)).mean())
        if likelihood - last < _ENOUGH:
            break
        last = likelihood
    order = np.argsort(mu)
    return [{"weight": float(weight[at]), "mu": float(mu[at]), "sigma": float(sigma[at])} for at in order]
