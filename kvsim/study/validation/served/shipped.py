"""Engine overheads as data: fitted to all served runs of a folder, and again without each model, GPU and release."""

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import numpy as np

from kvsim.study.validation.served.closed_loop import features
from kvsim.study.validation.served.engines import Engines
from kvsim.study.validation.served.runs import ServedRun
from kvsim.study.validation.served.score import Known, Labelled
from kvsim.study.validation.served.time import ServedTime
from kvsim.timing.fitting.calibration import Calibration


def fit_engines(runs: list[ServedRun], calibration: Calibration) -> dict[str, Any]:
    """The data file: parameters with standard errors by engine, and values by label that was left out."""
    if not runs:
        return {"provenance": calibration.provenance, "engines": {}, "without": {}}
    labelled = Labelled(runs)
    engines = Engines(runs, features(runs, calibration))
    everything = np.ones(len(runs), dtype=bool)
    without: dict[str, dict[str, dict[str, float]]] = {}
    for labels in (labelled.models, labelled.gpus, labelled.releases):
        for label in dict.fromkeys(labels):
            target = labels == label
            touched = tuple(dict.fromkeys(engines.engine[target]))
            found = engines.fits(~target, labelled.models, touched)
            stand_in = {name: found[name].values if name in found else _median(found) for name in touched}
            without[str(label)] = {
                name: {key: _short(value) for key, value in values.items()} for name, values in stand_in.items()
            }
    units = {one.name: one.unit for one in ServedTime().parameters}
    return {
        "provenance": calibration.provenance,
        "spread": engines.spread(everything, labelled.models),
        "engines": {
            name: {
                "rows": one.rows,
                "parameters": {
                    key: {
                        "value": _short(value),
                        "standard_error": _short(value * one.relative_errors[key]),
                        "unit": units[key],
                    }
                    for key, value in one.values.items()
                },
            }
            for name, one in sorted(engines.fits(everything, labelled.models).items())
        },
        "without": dict(sorted(without.items())),
    }


def shipped_engines() -> Known:
    """The overheads that come with kvsim."""
    table = json.loads(files("kvsim.timing").joinpath("data/engines.json").read_text("utf-8"))
    return Known(
        engines={
            name: {key: one["value"] for key, one in entry["parameters"].items()}
            for name, entry in table["engines"].items()
        },
        without=table["without"],
    )


def _median(found: Mapping[str, Any]) -> dict[str, float]:
    from kvsim.timing.families.interface import starts
    from kvsim.timing.fitting.robust import median_of

    return median_of({name: one.values for name, one in found.items()}) if found else starts(ServedTime())


def _short(value: float) -> float:
    return float(f"{value:.5g}")
