"""What is diagnosed: a scenario file, or the exact scenario that a run folder holds."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kvsim.errors import InputError
from kvsim.metrics.run_files import read_object
from kvsim.scenario.checks.references import model_reference, place_of_path, trace_reference
from kvsim.scenario.messages import Origin
from kvsim.scenario.resolve import Scenario, load

RESOLVED, SUMMARY = "resolved.json", "summary.json"
RIGHT = "name a scenario file, or a folder that `kvsim run -o` wrote"

_PATHS = {
    "model.name": model_reference,
    "workload.trace": trace_reference,
    "workload.lengths_of": trace_reference,
    "timing.file": place_of_path,
}
"""Keys that may hold a path relative to the file they were written in, and how each is read."""

_PLACE = re.compile(r"(?P<file>.+):(?P<line>\d+)")


def scenario_of(
    run: str | os.PathLike[str], *, overrides: Sequence[str] = (), variant: str | None = None
) -> tuple[Scenario, int, Mapping[str, Any] | None]:
    """The scenario of a run folder or of a scenario file, its seed, and the metrics that the folder holds (else None).

    A folder's scenario is made from its `resolved.json`; paths in it are seen from the working folder, as the run saw
    them. Raises InputError for a folder that holds no single run, for one whose scenario cannot be made again, and with
    every mistake of a scenario or an override.
    """
    if not os.path.isdir(run):
        scenario = load(run, overrides=overrides, variant=variant)
        return scenario, scenario.seed, None
    folder = Path(run)
    summary = read_object(folder / SUMMARY, RIGHT)
    if "metrics" not in summary:
        raise InputError(f"{folder / SUMMARY}: holds no metrics of one run; name the sub-folder of a variant")
    rows = read_object(folder / RESOLVED, RIGHT)
    if variant is not None:
        raise InputError(f"--variant {variant}: {folder} holds one run, of {summary['name']}; leave it out")
    scenario = Scenario.from_dict(_data(rows, summary["name"]), name=summary["name"], overrides=overrides)
    if not overrides:
        _check_same(scenario, rows, folder)
    return scenario, scenario.seed, summary["metrics"]


def _data(rows: Mapping[str, Mapping[str, Any]], label: str) -> dict[str, Any]:
    """What a file would have to say: every value but those that profile, model and planner decide."""
    decided = {"estimated", f"profile {_value(rows, 'engine.profile')}", f"model {_value(rows, 'model.name')}"}
    data: dict[str, Any] = {}
    for key, row in rows.items():
        value, source = row["value"], row["source"]
        # What a paper printed decides nothing; parameters of the roofline that nobody gave are the program's own.
        own = key.startswith("timing.") and key not in ("timing.name", "timing.file") and source == "default"
        if value is None or source in decided or own or key.partition(".")[0] in ("published", "name"):
            continue
        if key in _PATHS:
            value = _PATHS[key](value, key, {key: _origin(source, label)})
        *above, last = key.split(".")
        inner = data
        for word in above:
            inner = inner.setdefault(word, {})
        inner[last] = value
    return data


def _origin(source: str, label: str) -> Origin:
    """The place that `Origin.source` wrote."""
    text = source.removeprefix("extends ").removeprefix(f"variant {label} ")
    place = _PLACE.fullmatch(text)
    return Origin("file", place["file"], int(place["line"])) if place else Origin(source)


def _value(rows: Mapping[str, Mapping[str, Any]], key: str) -> object:
    return rows.get(key, {}).get("value")


def _check_same(scenario: Scenario, rows: Mapping[str, Mapping[str, Any]], folder: Path) -> None:
    """InputError where the scenario made again is another."""
    again = scenario.resolved()
    for key, row in rows.items():
        if key in _PATHS or key in ("name", "seed") or key.startswith("published"):
            continue
        if key not in again or again[key]["value"] != row["value"]:
            now = again[key]["value"] if key in again else "not there"
            raise InputError(
                f"{folder / RESOLVED}: {key}: is {row['value']!r} there and {now!r} now, so that the run cannot be "
                "made again from its folder; diagnose its scenario file"
            )
