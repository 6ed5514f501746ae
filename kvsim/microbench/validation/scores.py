"""Errors of predictions put together: mean, median, p90 and worst |error|, bias, worst points, and the baselines."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kvsim.microbench.results import Point
from kvsim.timing.families.interface import Column

WORST = 5
"""Worst points that a score lists."""


def score(points: Sequence[Point], predicted: Column, baselines: Mapping[str, Column]) -> dict[str, Any]:
    """Errors are predicted over measured medians, less 1. `within_spread`: the share of points whose prediction lies
    between the point's own p10 and p90; baselines have None where they say nothing."""
    off = _errors(points, predicted)
    size = np.abs(off)
    inside = [point.p10_s <= seconds <= point.p90_s for point, seconds in zip(points, predicted, strict=True)]
    worst = np.argsort(-size, kind="stable")[:WORST]
    found: dict[str, Any] = {
        "n": len(points),
        "mean_abs_error": _round(size.mean()),
        "median_abs_error": _round(np.median(size)),
        "p90_abs_error": _round(np.quantile(size, 0.9)),
        "worst_abs_error": _round(size.max()),
        "bias": _round(off.mean()),
        "within_spread": _round(np.mean(inside)),
    }
    for name, seconds in baselines.items():
        other = np.abs(_errors(points, seconds))
        known = other[np.isfinite(other)]
        found[f"baseline_{name}_mean"] = _round(known.mean()) if len(known) else None
        found[f"baseline_{name}_p90"] = _round(np.quantile(known, 0.9)) if len(known) else None
    found["worst"] = [
        {
            "point": points[at].label,
            "line": points[at].line,
            "measured_s": float(f"{points[at].median_s:.5g}"),
            "predicted_s": float(f"{predicted[at]:.5g}"),
            "error": _round(off[at]),
        }
        for at in worst
    ]
    return found


def _errors(points: Sequence[Point], predicted: Column) -> Column:
    return np.asarray(predicted / np.array([point.median_s for point in points]) - 1)


def _round(value: float) -> float:
    return round(float(value), 4)
