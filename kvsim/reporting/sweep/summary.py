"""The points of a sweep as numbers: what its runs have in the mean, and which points no other beats."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kvsim.metrics.result import SCHEMA
from kvsim.reporting.sweep.measures import GOODPUT, OUTPUT, TTFT, Measure, measures
from kvsim.study.sweeps.sweep import Sweep
from kvsim.study.values import shown


@dataclass(frozen=True)
class At:
    """One variant at one point: its changes as written, and the rows of the runs there that have a result."""

    variant: str | None
    changes: Mapping[str, Any]
    rows: Sequence[Mapping[str, Any]]
    failed: int

    def values(self, measure: Measure) -> list[float]:
        """The numbers of its runs, of those that have one."""
        return [value for row in self.rows if (value := measure.of(row)) is not None]

    def mean(self, measure: Measure) -> float | None:
        """Their mean; None without any."""
        values = self.values(measure)
        return sum(values) / len(values) if values else None

    @property
    def name(self) -> str:
        """The variant and the changes, as people write them."""
        changes = [f"{key}={shown(value)}" for key, value in self.changes.items()]
        return " ".join(([self.variant] if self.variant else []) + changes)


def every_point(sweep: Sweep) -> list[At]:
    """All variants at all points, in the order of the runs."""
    rows = {row["run"]: row for row in sweep.rows}
    by_point: dict[tuple[str | None, int], list[int]] = {}
    for number, run in enumerate(sweep.runs):
        by_point.setdefault((run.scenario.variant, run.point), []).append(number)
    found = []
    for (variant, point), numbers in by_point.items():
        there = [rows[number] for number in numbers if number in rows]
        fine = [row for row in there if row["error"] is None]
        found.append(At(variant, sweep.points[point], fine, len(there) - len(fine)))
    return found


def goals(points: Sequence[At]) -> tuple[Measure, Measure]:
    """What a Pareto front is drawn between: latency, and goodput, or output tokens where no goal was set."""
    has_goodput = any(one.mean(GOODPUT) is not None for one in points)
    return TTFT, GOODPUT if has_goodput else OUTPUT


def pareto(points: Sequence[At], low: Measure, high: Measure) -> list[At]:
    """The points that no other beats: none has less of `low` and as much of `high`, or more of it and as little."""
    known = [(one.mean(low), None if (more := one.mean(high)) is None else -more) for one in points]
    return [points[place] for place in front(known)]


def front(pairs: Sequence[tuple[float | None, float | None]]) -> list[int]:
    """Places of the pairs that no other beats: none has less of one number and no more of the other; None is beaten."""
    there = sorted((one, other, place) for place, (one, other) in enumerate(pairs) if None not in (one, other))
    found, before = [], (math.inf, math.inf)
    for one, other, place in there:
        if other < before[1] or (one, other) == before:
            found.append(place)
            before = one, other
    return sorted(found)


def sweep_summary(sweep: Sweep, names: Sequence[str] | None = None) -> dict[str, Any]:
    """The object that `kvsim sweep --json` prints and `summary.json` holds: every point with mean, least and most."""
    points = every_point(sweep)
    told = measures(sweep.rows, names)
    front = pareto(points, *goals(points))
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
        "not_modelled": list(dict.fromkeys(gap for came in sweep.outcomes.values() for gap in came["not_modelled"])),
        "notes": notes_of(sweep),
        "points": [
            {
                "variant": one.variant,
                "changes": dict(one.changes),
                "runs": len(one.rows),
                "failed": one.failed,
                "pareto": one in front,
                "metrics": {measure.name: _spread(measure, one) for measure in told},
            }
            for one in points
        ],
    }


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
