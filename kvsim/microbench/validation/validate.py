"""Scores of a calibration on held-out operations, by structure: other models' shapes, sizes in between, unseen batches
and contexts, uneven contexts, and every composite step, which is predicted as the sum of its kernels."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kvsim.errors import InputError
from kvsim.microbench.fit.series import fitted, series_of
from kvsim.microbench.fit.step import kernels_s
from kvsim.microbench.results import Point, Results
from kvsim.microbench.validation.baselines import datasheet_s, line_of_others_s, line_s
from kvsim.microbench.validation.scores import score
from kvsim.timing.families import Device, family
from kvsim.timing.families.interface import Column, Values
from kvsim.timing.families.measured import Line
from kvsim.timing.fitting.calibration import Calibration

STEP = "step"
GATES: Mapping[str, Mapping[str, float]] = {STEP: {"mean": 0.10, "p90": 0.20}, "operation": {"mean": 0.10}}
"""Most |error| that will do: of steps, and of each family of single operations."""


def validate(calibration: Calibration, results: Results, device: Device) -> dict[str, Any]:
    """Score every held-out point of `results` that the calibration of `device` has a family for.

    Raises InputError where nothing is held out, or where the calibration has nothing on this GPU.
    """
    parameters = {name: one.values for (gpu, name), one in calibration.entries.items() if gpu == device.name}
    if not parameters:
        raise InputError(
            f"the calibration is of {', '.join(calibration.gpus)}, and {results.path} was measured on {device.name}; "
            "give results of the same GPU"
        )
    groups = [*_operations(results, parameters, device), *_steps(results, parameters, device)]
    if not groups:
        raise InputError(f"{results.path}: holds out no operation that was fitted; run `kvsim calibrate run` in full")
    gates = [gate for one in groups for gate in _gates(one)]
    if not any(one["family"].startswith(STEP) for one in groups):
        gates.append({"bench": STEP, "gate": "measured", "most": None, "reached": None, "met": False})
    return {
        "gpu": device.name,
        "provenance": calibration.provenance,
        "results_sha256": results.sha256,
        "families": groups,
        "gates": gates,
        "not_held_out": sorted(set(parameters) - {one["fitted"] for one in groups if one["fitted"]}),
        "missing_us_per_layer": {
            name.partition(":")[2]: values["layer_us"] for name, values in parameters.items() if name.startswith(STEP)
        },
    }


def _operations(results: Results, parameters: Mapping[str, Values], device: Device) -> list[dict[str, Any]]:
    known = series_of(results.points, "fit")
    found = []
    for name, series in series_of(results.points, "holdout").items():
        own = fitted(name, parameters)
        if own is None:
            continue
        _all_verified(results, series.points)
        rows = {**series.rows, "cold": np.ones(len(series))}
        predicted = family(own).seconds(parameters[own], rows, device)
        train = known[name].points if name in known else ()
        found.append(_scored(name, own, series.points, predicted, line_s(series.points, train), device))
    return found


def _steps(results: Results, parameters: Mapping[str, Values], device: Device) -> list[dict[str, Any]]:
    found = []
    for variant in ("graph", "eager"):
        points = [point for point in results.points if point.bench == STEP and point.variant == variant]
        predicted = kernels_s(points, parameters, device) if points else None
        if predicted is None:
            continue
        _all_verified(results, points)
        found.append(_scored(f"{STEP}:{variant}", None, points, predicted, line_of_others_s(points), device))
    return found


def _scored(
    name: str, own: str | None, points: Sequence[Point], predicted: Column, line: Column, device: Device
) -> dict[str, Any]:
    datasheet = np.array([datasheet_s(point, device) for point in points])
    # Of kernels one family is all of a benchmark; lines (copies, allocations, steps) are one for each variant.
    kind, _, variant = name.partition(":")
    bench = f"{kind} {variant.replace('_', ' ')}" if isinstance(family(name), Line) else points[0].bench
    return {"family": name, "bench": bench, "fitted": own} | score(
        points, predicted, {"datasheet": datasheet, "line": line}
    )


def _all_verified(results: Results, points: Sequence[Point]) -> None:
    for point in points:
        if point.verified is False:
            raise InputError(
                f"{results.path}, line {point.line}: {point.label}: its result is wrong (verified false); every point "
                "that is scored must be verified"
            )


def _gates(group: Mapping[str, Any]) -> list[dict[str, Any]]:
    kind = STEP if group["family"].startswith(STEP) else "operation"
    return [
        {
            "bench": group["bench"],
            "gate": name,
            "most": most,
            "reached": group[f"{name}_abs_error"],
            "met": group[f"{name}_abs_error"] <= most,
        }
        for name, most in GATES[kind].items()
    ]
