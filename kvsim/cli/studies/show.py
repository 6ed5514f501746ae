"""A sweep for people to read: what it shows, a table of its points at 80 columns, and where the numbers come from."""

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kvsim.cli.show import Justify, console, print_rows, print_text
from kvsim.reporting.finding import SOURCES, expected, sources_of, three_digits
from kvsim.reporting.sweep.measures import Measure, measures
from kvsim.reporting.sweep.points import SATURATED, SATURATED_MEANS, At, every_point, goals, pareto
from kvsim.reporting.sweep.summary import expected_errors, notes_of
from kvsim.reporting.sweep.sustained import sentences, sustained
from kvsim.study.values import shown

if TYPE_CHECKING:
    from kvsim.study.sweeps.sweep import Sweep

MOST_ROWS = 40
"""Points that are all printed; of more, those alone that no other beats."""

MOST_NOTES = 5
MOST_ERRORS = 3
MOST_SOURCES = 2

_BETWEEN = 2
"""Columns of the terminal between two columns of the table."""


def print_sweep(args: argparse.Namespace, sweep: "Sweep", names: Sequence[str] | None = None) -> None:
    """Print the finding, the points, and where the numbers come from."""
    out = console(args)
    points = every_point(sweep)
    low, high = goals(points)
    front = pareto(points, low, high)
    print_text(out, _finding(sweep, points, front, low, high), "bold")
    for line in sentences(sustained(sweep, points), points):
        print_text(out, line)
    if front:
        print_text(out, f"*: no other point has both less {low.label} and more {high.label}.", "dim")
    if any(at.saturated for at in points):
        print_text(out, f"{SATURATED}: {SATURATED_MEANS}", "dim")
    listed = points if len(points) <= MOST_ROWS else sorted(front, key=lambda at: at.mean(high) or 0)
    if len(listed) < len(points):
        print_text(
            out, f"Of {len(points)} points the {len(listed)} such ones are listed; all are in the folder.", "dim"
        )
    if front:
        out.print()
        print_rows(args, *_table(sweep, listed, front, measures(sweep.rows, names), out.width))
    out.print()
    for run, error in sweep.failed[:MOST_ERRORS]:
        changes = " ".join(f"{key}={shown(value)}" for key, value in sweep.points[run.point].items())
        print_text(out, f"note: failed at {changes} (seed {run.seed}): {error}")
    notes = notes_of(sweep)
    for note in notes[:MOST_NOTES]:
        print_text(out, f"note: {note}")
    if len(notes) > MOST_NOTES:
        print_text(out, f"note: {len(notes) - MOST_NOTES} more are in the column notes of the runs")
    fine = [sweep.outcomes[run.key] for run in sweep.runs if sweep.outcomes[run.key]["error"] is None]
    for line in _sources([came["provenance"] for came in fine], list(map(expected, expected_errors(sweep)))):
        print_text(out, line, "dim")
    gaps = list(dict.fromkeys(gap for came in fine for gap in came["not_modelled"]))
    if gaps:
        print_text(out, "not modelled:", "dim")
    for gap in gaps:
        print_text(out, f"- {gap}", "dim")


def _finding(sweep: "Sweep", points: Sequence[At], front: Sequence[At], low: Measure, high: Measure) -> str:
    failed = f", of which {len(sweep.failed)} failed" if sweep.failed else ""
    said = [f"{len(points)} points, {len(sweep.runs)} runs{failed}."]
    if front:
        most = max(front, key=lambda at: at.mean(high) or 0)
        least = min(front, key=lambda at: at.mean(low) or 0)
        said.append(f"Most {high.label}: {_told(most, high, low)}.")
        if least is not most:
            said.append(f"Least {low.label}: {_told(least, low, high)}.")
    return " ".join(said)


def _sources(provenances: Sequence[Mapping[str, str]], errors: Sequence[str]) -> list[str]:
    """Where each family of numbers comes from, in one line where all runs agree or a few differ; `errors` of times."""
    said = []
    for family in dict.fromkeys(family for one in provenances for family in one):
        lines = list(dict.fromkeys(line for one in provenances for line in sources_of({family: one[family]})))
        few = len(lines) <= MOST_SOURCES
        said += (
            lines if few else [f"{SOURCES.get(family, family)}: {len(lines)} kinds, in the column provenance.{family}"]
        )
        said += errors if family == "timing" else ()
    return said


def _told(at: At, first: Measure, second: Measure) -> str:
    numbers = [f"{one.label} {three_digits(at.mean(one))} {one.unit}" for one in (first, second)]
    return f"{at.name} ({', '.join(numbers)})"


def _table(
    sweep: "Sweep", points: Sequence[At], front: Sequence[At], told: Sequence[Measure], width: int
) -> tuple[list[tuple[str, Justify]], list[list[str]]]:
    """As many measures as fit, the first ones first."""
    columns: list[tuple[str, Justify]] = []
    cells: list[list[str]] = []
    if any(at.variant for at in points):
        columns.append(("variant", "left"))
        cells.append([at.variant or "" for at in points])
    for axis in sweep.axes:
        columns.append((axis.key.replace(".", ".\n"), "right" if axis.numbers else "left"))
        cells.append([shown(at.changes[axis.key]) if axis.key in at.changes else "" for at in points])
    starred = [
        ("*" if at in front else "") + (SATURATED if at.saturated else "") + ("!" if at.failed else "") for at in points
    ]
    room = width - sum(map(_width, columns, cells)) - _width(("*", "left"), starred)
    for measure in told:
        column: tuple[str, Justify] = ("\n".join([*measure.label.split(), measure.unit]).strip(), "right")
        numbers = [_number(at.mean(measure)) for at in points]
        room -= _width(column, numbers)
        if room < 0:
            break
        columns.append(column)
        cells.append(numbers)
    return [*columns, ("", "left")], [list(row) for row in zip(*cells, starred, strict=True)]


def _number(value: float | None) -> str:
    return f"{value:,.0f}" if value is not None and value == int(value) else three_digits(value)


def _width(column: tuple[str, Justify], cells: Sequence[str]) -> int:
    return _BETWEEN + max(map(len, [*column[0].split("\n"), *cells]))
