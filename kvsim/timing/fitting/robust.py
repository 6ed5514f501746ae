"""Robust fits in log time: soft-L1 on log(predicted / measured), parameters in logarithms, weak priors.

A prior counts as one more row that is off by `PRIOR_SCALE` when the parameter is e times its start: it decides what
the rows leave open and nothing else. Standard errors are those of the linearised problem at the optimum.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kvsim.timing.families.device import Device
from kvsim.timing.families.interface import Column, Family, Rows, Values

LOSS_SCALE = 0.1
"""Log ratios beyond about 10 % count linearly, not squared."""
PRIOR_SCALE = 0.1
TOLERANCE = 1e-5
MOST_STEPS = 60


@dataclass(frozen=True, slots=True)
class Fitted:
    """Parameters with their relative standard errors, and the number of rows they rest on."""

    values: dict[str, float]
    relative_errors: dict[str, float]
    rows: int


def fit(
    family: Family,
    rows: Rows,
    measured_s: Column,
    device: Device,
    *,
    prior: Values | None = None,
    weights: Column | None = None,
    trust: float = 1.0,
) -> Fitted:
    """Fit one family on one device.

    `prior` replaces the starts, `weights` (1 unless given) multiply residuals, `trust` the pull of the prior.
    """
    from scipy.optimize import least_squares  # late: only fits need it

    names = [one.name for one in family.parameters]
    centre = np.array([_inside(one.low, (prior or {}).get(one.name, one.start), one.high) for one in family.parameters])
    low = np.log([one.low for one in family.parameters]) - 1e-9
    high = np.log([one.high for one in family.parameters]) + 1e-9
    start = np.log(centre)
    pull = trust * PRIOR_SCALE / np.array([one.spread for one in family.parameters])
    logs = np.log(measured_s)
    weigh = np.ones_like(logs) if weights is None else weights

    def residuals(parameters: Column) -> Column:
        values = dict(zip(names, np.exp(parameters), strict=True))
        off = weigh * (np.log(family.seconds(values, rows, device)) - logs)
        return np.concatenate([off, pull * (parameters - start)])

    found = least_squares(
        residuals,
        start,
        bounds=(low, high),
        loss="soft_l1",
        f_scale=LOSS_SCALE,
        ftol=TOLERANCE,
        xtol=TOLERANCE,
        max_nfev=MOST_STEPS,
    )
    best = np.exp(found.x)
    return Fitted(
        values=dict(zip(names, (float(value) for value in best), strict=True)),
        relative_errors=dict(zip(names, _errors(found.jac, found.fun), strict=True)),
        rows=len(measured_s),
    )


def median_of(several: Mapping[str, Values]) -> dict[str, float]:
    """The median of each parameter over devices: what an unseen one is taken to reach."""
    names = next(iter(several.values()))
    return {name: float(np.exp(np.median([np.log(values[name]) for values in several.values()]))) for name in names}


def _inside(low: float, value: float, high: float) -> float:
    margin = 1.001
    return min(max(value, low * margin), high / margin)


def _errors(jacobian: Column, residuals: Column) -> list[float]:
    """Of log parameters, so relative; the pseudo-inverse leaves what nothing decides to the prior."""
    freedom = max(1, len(residuals) - jacobian.shape[1])
    variance = float(residuals @ residuals) / freedom
    covariance = np.linalg.pinv(jacobian.T @ jacobian) * variance
    return [float(np.sqrt(max(0.0, value))) for value in np.diag(covariance)]
