"""The points of a sweep: what their runs have in the mean, which are saturated, and which no other beats."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kvsim.reporting.front import front
from kvsim.reporting.sweep.measures import GOODPUT, OUTPUT, TTFT, Measure
from kvsim.study.sweeps.sweep import Sweep
from kvsim.study.values import shown

SATURATED = "~"
"""The mark of a point that is."""

SATURATED_MEANS = "saturated: its queue grows for as long as requests come; its numbers are those of this run length."


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
    def saturated(self) -> bool | None:
        """Whether its queue grows for as long as requests come; None where its runs were not meant to show that.

        Of several replications by all of them together, as chance may have one of them grow.
        """
        verdicts = [row["saturated"] for row in self.rows]
        if not verdicts or None in verdicts:
            return None
        growths = [row["queue_growth"] for row in self.rows]
        errors = [row["queue_growth_error"] for row in self.rows]
        if len(verdicts) == 1 or None in growths:
            return all(verdicts)
        from kvsim.study.statistics.saturation import shares_grow

        return bool(shares_grow(growths, errors))

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
