"""A sweep as one object of numbers: every point, what was sustained, what to know of it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kvsim.metrics.result import SCHEMA
from kvsim.reporting.sweep.measures import Measure, measures
from kvsim.reporting.sweep.points import At, every_point, goals, pareto
from kvsim.reporting.sweep.sustained import sustained
from kvsim.study.sweeps.sweep import Sweep


def sweep_summary(sweep: Sweep, names: Sequence[str] | None = None) -> dict[str, Any]:
    """The object that `kvsim sweep --json` prints and `summary.json` holds: every point with mean, least and most."""
    points = every_point(sweep)
    told = measures(sweep.rows, names)
    front = pareto(points, *goals(points))
    errors = expected_errors(sweep)
    return {
        "schema": SCHEMA,
        "scenario": sweep.name,
        "version": sweep.identity.version,
        "study": sweep.identity.fingerprint,
        "runs": len(sweep.runs),
        "replications": sweep.identity.replications,
        "axes": [
            {"key": one.key, "values": list(one.values), "numbers": one.numbers, "unit": one.unit} for one in sweep.axes
        ],
        "failed": [
            {
                "variant": run.scenario.variant,
                "changes": dict(sweep.points[run.point]),
                "seed": run.seed,
                "error": error,
            }
            for run, error in sweep.failed
        ],
        "provenance": provenance(sweep),
        **({"expected_error": errors} if errors else {}),
        "not_modelled": list(dict.fromkeys(gap for came in sweep.outcomes.values() for gap in came["not_modelled"])),
        "notes": notes_of(sweep),
        "points": [
            {
                "variant": one.variant,
                "changes": dict(one.changes),
                "runs": len(one.rows),
                "failed": one.failed,
                "pareto": one in front,
                "saturated": one.saturated,
                "metrics": {measure.name: _spread(measure, one) for measure in told},
            }
            for one in points
        ],
        "sustained": [
            {"variant": one.variant, "changes": dict(one.changes), "kept": one.kept, "not_kept": one.not_kept}
            for one in sustained(sweep, points)
        ],
    }


def expected_errors(sweep: Sweep) -> list[Mapping[str, Any]]:
    """The errors to expect of latencies, one for each kind of run."""
    found = {repr(error): error for came in sweep.outcomes.values() if (error := came["expected_error"])}
    return [found[text] for text in sorted(found)]


def notes_of(sweep: Sweep) -> list[str]:
    """What the runs say of themselves, each once, with how many of them say it where not all do."""
    counts: dict[str, int] = {}
    fine = [came for run in sweep.runs if (came := sweep.outcomes.get(run.key)) and came["error"] is None]
    for came in fine:
        for note in came["notes"]:
            counts[note] = counts.get(note, 0) + 1
    return [note if count == len(fine) else f"{note} ({count} of {len(fine)} runs)" for note, count in counts.items()]


def provenance(sweep: Sweep) -> dict[str, list[str]]:
    """Where each family of numbers comes from: what the runs say, each once, in their order."""
    found: dict[str, dict[str, None]] = {}
    for run in sweep.runs:
        came = sweep.outcomes.get(run.key)
        for family, source in came["provenance"].items() if came and came["error"] is None else ():
            found.setdefault(family, {})[source] = None
    return {family: list(sources) for family, sources in found.items()}


def _spread(measure: Measure, one: At) -> dict[str, float] | None:
    """In the metric's own unit, as everywhere in JSON."""
    values = one.values(replace(measure, scale=1))
    return {"mean": sum(values) / len(values), "min": min(values), "max": max(values)} if values else None
