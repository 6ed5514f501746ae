"""The whole validation of a folder of measurements: what `kvsim validate` prints."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from kvsim.errors import InputError
from kvsim.study.validation import kernels
from kvsim.study.validation.expected import expected_errors
from kvsim.study.validation.layers import layers
from kvsim.study.validation.recorded import recorded_runs
from kvsim.study.validation.scores import Scored, cliffs, errors, groups, kv_bound, spread, summary
from kvsim.study.validation.served import score as served
from kvsim.study.validation.served.closed_loop import features
from kvsim.study.validation.served.runs import ServedRun, why_not
from kvsim.study.validation.served.shipped import shipped_engines
from kvsim.study.validation.served.tables import TABLES as SERVED_TABLES
from kvsim.study.validation.served.tables import Runs, read_runs
from kvsim.timing.fitting.calibrate import calibrate
from kvsim.timing.fitting.calibration import Calibration, shipped
from kvsim.timing.fitting.kernel_tables import TABLES as KERNEL_TABLES
from kvsim.timing.fitting.kernel_tables import read_folder

FIRST_TOKEN = "ttft"
"""A served row has a first token beside its steps: scored apart, so that `groups` has every row once."""


def validate(folder: Path, own: Calibration | None = None) -> dict[str, Any]:
    """Score every known table of `folder` on held-out groups; fits of `own` stand over those that come with kvsim.

    `groups`: unseen shapes of kernels and unseen models of served runs, every row once; `first_token`: times to first
    token of the same runs; `unseen_gpu` and `unseen_release` in the same form; `skipped` counts rows by reason;
    `summary` puts rows together; `recorded_runs` are replayed. Raises InputError where nothing is known.
    """
    measured, runs = read_folder(folder), read_runs(folder)
    usable, skipped = usable_runs(runs)
    skipped.update(measured.skipped)
    skipped.update(runs.empty)
    recorded, left = recorded_runs(folder)
    if not measured.samples and not usable and not recorded:
        names = ", ".join([*list(KERNEL_TABLES)[:2], *list(SERVED_TABLES)[:2]])
        raise InputError(f"{folder}: holds no table that can be scored; known are files such as {names}")
    known = shipped() if own is None else own.over(shipped())
    calibration = merged(known, calibrate(measured, strict=False))
    engines = shipped_engines()
    seen = list(kernels.unseen_shapes(measured.samples, known))
    seen += list(layers(folder, seen))
    blind = list(kernels.unseen_gpu(measured.samples, calibration))
    blind += list(layers(folder, blind))
    releases: list[Scored] = []
    expected: dict[str, Any] = {}
    if usable:
        seen += served.unseen_models(usable, calibration, engines)
        blind += served.unseen_gpu(usable, calibration, engines)
        releases = served.unseen_release(usable, calibration, engines)
        expected = expected_errors(
            {"model": seen, "gpu": blind, "engine": releases}, usable, features(usable, calibration)
        )
    rows = measured.rows + runs.rows
    missing = sum(skipped.values())
    return {
        "groups": groups(one for one in seen if one.family != FIRST_TOKEN),
        "first_token": groups(one for one in seen if one.family == FIRST_TOKEN),
        "skipped": [{"reason": reason, "rows": count} for reason, count in sorted(skipped.items())],
        "rows": rows,
        "scored_rows": rows - missing,
        "recorded_runs": [run.as_json() for run in recorded],
        "not_scored_here": left,
        "unseen_gpu": groups(blind),
        "unseen_release": groups(releases),
        "summary": {
            "unseen_model": summary(seen, ("source", "family", "kind")),
            "unseen_model_by_gpu": summary(seen, ("source", "gpu", "family", "kind")),
            "unseen_gpu": summary(blind, ("source", "family", "kind")),
            "unseen_gpu_by_gpu": summary(blind, ("source", "gpu", "family", "kind")),
            "kv_bound": summary(kv_bound(seen), ("source", "family", "kind")),
            "unseen_release": summary(releases, ("source", "family", "kind")),
            "targets": targets(seen, blind),
        },
        "kv_bound_rows": cliffs(seen),
        "expected_errors": expected,
        "provenance": {"calibration": known.provenance, "inputs_sha256": measured.hashes | runs.hashes},
    }


def sample_folder() -> Path:
    """The small set of measurements that comes with kvsim: enough to show that the verb works, too few to judge by."""
    return Path(str(files("kvsim.study.validation").joinpath("data/sample")))


def merged(base: Calibration, own: Calibration) -> Calibration:
    """The shipped fits, replaced by the folder's own where it has them."""
    return Calibration(dict(base.entries) | dict(own.entries), base.provenance)


def targets(seen: Sequence[Scored], blind: Sequence[Scored]) -> list[dict[str, Any]]:
    """The goals that the project set itself, with what was reached."""
    table = json.loads(files("kvsim.study.validation").joinpath("data/targets.json").read_text("utf-8"))
    found = []
    for goal in table:
        rows = blind if goal["held_out"] == "gpu" else seen
        chosen = [one for one in rows if _is(one, goal)]
        if not chosen:
            continue
        reached = spread(np.concatenate([errors(one) for one in chosen]))
        entry = dict(goal) | {"reached": reached}
        entry["met"] = all(
            goal.get(name) is None or reached[f"{name}_abs_error"] <= goal[name] for name in ("median", "p95")
        )
        found.append(entry)
    return found


def _is(one: Scored, goal: Mapping[str, Any]) -> bool:
    return (
        one.family.startswith(goal["family"])
        and (not goal.get("sources") or one.source in goal["sources"])
        and (not goal.get("kind") or one.kind == goal["kind"])
    )


def usable_runs(runs: Runs) -> tuple[list[ServedRun], Counter[str]]:
    """Runs that can be predicted, and rows that cannot by reason."""
    usable, skipped = [], Counter[str]()
    for run in runs.runs:
        reason = why_not(run)
        if reason is None:
            usable.append(run)
        elif run.quantity != "ttft":
            skipped[f"{run.source}: {reason}"] += 1
    return usable, skipped
