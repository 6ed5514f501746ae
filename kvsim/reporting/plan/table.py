"""The candidates of a plan and the rates of a cliff as rows of text."""

from collections.abc import Sequence

from kvsim.reporting.finding import three_digits
from kvsim.reporting.plan.words import bearing_text, best, goal_label
from kvsim.study.planning.plan import Plan, Planned

Column = tuple[str, list[str]]
"""A heading, in lines, and the cell of each row."""


def plan_columns(plan: Plan) -> list[Column]:
    """Headings and cells, the candidate first, then what is wanted most first; the last marks the Pareto front."""
    rows, front = plan.rows, best(plan)
    columns: list[Column] = [
        ("candidate", [one.candidate.name for one in rows]),
        ("replicas\nx GPUs", [_size(one) for one in rows]),
        ("meets", ["out" if one.out is not None else "yes" if one.meets else "no" for one in rows]),
        ("USD\n/h", [three_digits(one.cost("usd_per_hour")) for one in rows]),
        ("USD/M\ntokens", [three_digits(one.cost("usd_per_million_output_tokens")) for one in rows]),
    ]
    if plan.traffic.changes:
        columns.append(("most\n/s", [bearing_text(one.largest_per_s, one) for one in rows]))
        spare = [(plan.headroom(one), one) for one in rows]
        cells = ["-" if times is None else f"{bearing_text(times, one)} x" for times, one in spare]
        columns.append(("head-\nroom", cells))
    for place, goal in enumerate(plan.goals):
        label, unit, scale = goal_label(goal)
        values = [None if one.trial is None else one.trial.values[place] for one in rows]
        cells = ["-" if value is None else three_digits(value * scale) for value in values]
        columns.append((f"{label.replace(' ', chr(10))} {unit}", cells))
    columns.append(("", ["*" if one in front else "" for one in rows]))
    return columns


def fitting(columns: Sequence[Column], width: int, between: int = 2) -> list[Column]:
    """The columns that fit, the first ones first; the last of them always does."""
    *others, mark = columns
    found, left = [], width - _width(mark, between)
    for column in others:
        left -= _width(column, between)
        if left < 0:
            break
        found.append(column)
    return [*found, mark]


def _size(one: Planned) -> str:
    return f"- x {one.candidate.gpus}" if one.replicas is None else f"{one.replicas} x {one.candidate.gpus}"


def _width(column: Column, between: int) -> int:
    heading, cells = column
    return between + max(map(len, [*heading.split("\n"), *cells]))
