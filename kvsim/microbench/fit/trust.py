"""Whether results may be fitted: by a GPU, one GPU, one build, verified, steady and whole.

What may be overridden has a name, and a calibration says which names were. An anchor is one operation that is measured
again and again: its drift is the largest distance of one of its medians from the median of them. Medians of 20 samples
of the same operation on an idle GPU repeat within 1 %; a GPU that heats up or shares its power moves them by more than
3 %, and then points taken early and late do not belong to one set of parameters.
"""

from collections import defaultdict
from collections.abc import Collection
from typing import Any

import numpy as np

from kvsim.errors import InputError
from kvsim.microbench.benches import BENCHES
from kvsim.microbench.results import Env, Point, Results

MOST_DRIFT = 0.03
OVERRIDES = {
    "emulated": "times that no GPU took",
    "drift": f"anchors that drifted by more than {100 * MOST_DRIFT:.0f} %",
    "unchecked": "kernels whose results nobody checked (`--no-verify`)",
    "cut-short": "a run without its end",
    "few-points": "families with too few points, which are left out",
}
"""What `--accept` takes, and what it lets pass."""
SAME = {
    "devices": ("device", "uuid_hash", "backend"),
    "sources": ("source_sha256", "kvsim_version"),
    "builds": ("nvcc", "build_arch", "driver", "cuda_runtime", "cublas"),
}
"""Fields that all runs of a file must agree in, by what they tell."""


def refuse(results: Results, accepted: Collection[str] = ()) -> list[str]:
    """Raises InputError for results that may not be fitted; returns the overrides that were needed."""
    needed: list[str] = []
    where = str(results.path)
    _one_machine(results)
    for run in results.runs:
        _a_gpu(where, run.env, accepted, needed)
        if run.end is None:
            _overridable(
                "cut-short",
                f"{where}: has no end record: the run was cut short; run it again",
                accepted,
                needed,
            )
        elif run.end.points != len(run.points):
            raise InputError(
                f"{where}: its end says {run.end.points} points and {len(run.points)} are there; take the whole file"
            )
    _verified(where, results.points, accepted, needed)
    for name, drift in drifts(results).items():
        if drift > MOST_DRIFT:
            _overridable(
                "drift",
                f"{where}: the anchor {name} drifted by {100 * drift:.1f} %, {100 * MOST_DRIFT:.0f} % at most may be; "
                "measure again on an idle GPU",
                accepted,
                needed,
            )
    return list(dict.fromkeys(needed))


def drifts(results: Results) -> dict[str, float]:
    """The drift of each anchor, by its label; one label is one operation."""
    medians: dict[str, list[float]] = defaultdict(list)
    for point in results.points:
        if point.role == "anchor":
            medians[point.label].append(point.median_s)
    found = {}
    for name, seconds in medians.items():
        found[name] = float(np.max(np.abs(np.array(seconds) / np.median(seconds) - 1)))
    return found


def _one_machine(results: Results) -> None:
    first = results.runs[0].env
    for run in results.runs[1:]:
        for what, names in SAME.items():
            for name in names:
                one, other = first.fields.get(name), run.env.fields.get(name)
                if one != other:
                    raise InputError(
                        f"{results.path}: mixes {what}: {name} is {one!r} and {other!r}; fit the runs of one GPU and "
                        "one build"
                    )


def _a_gpu(where: str, env: Env, accepted: Collection[str], needed: list[str]) -> None:
    if env.emulated:
        _overridable(
            "emulated",
            f"{where}: backend is {env.backend!r} on device {env.device!r}: no GPU took these times; give results of "
            "backend cuda",
            accepted,
            needed,
        )


def _verified(where: str, points: list[Point], accepted: Collection[str], needed: list[str]) -> None:
    for point in points:
        if point.role != "fit":
            continue
        place = f"{where}, line {point.line}: {point.label}"
        right = "every point that is fitted must be verified"
        if point.verified is False:
            raise InputError(f"{place}: its result is wrong (verified false); {right}")
        if point.verified is None and BENCHES[point.bench].computes:
            message = f"{place}: its result is not checked (verified null); {right}"
            _overridable("unchecked", message, accepted, needed)


def _overridable(name: str, message: str, accepted: Collection[str], needed: list[str]) -> None:
    if name not in accepted:
        raise InputError(f"{message}, or say --accept {name}")
    needed.append(name)


def summary(results: Results) -> dict[str, Any]:
    """Counts of what the runs wrote, and the drift of their anchors."""
    points = results.points
    return {
        "points": {role: sum(point.role == role for point in points) for role in ("fit", "holdout", "anchor")},
        "skipped": sum(len(run.skipped) for run in results.runs),
        "errors": sum(len(run.errors) for run in results.runs),
        "failed": sum(point.verified is False for point in points),
        "anchor_drift": {name: round(drift, 5) for name, drift in drifts(results).items()},
    }
