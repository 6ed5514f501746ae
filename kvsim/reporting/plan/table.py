"""The candidates of a plan, as its summary tells them, and the rates of a cliff as rows of text."""

from collections.abc import Mapping, Sequence
from typing import Any

from kvsim.reporting.finding import three_digits
from kvsim.reporting.plan.words import goal_label
from kvsim.study.planning.goals import Goal

Column = tuple[str, list[str]]
"""A heading, in lines, and the cell of each row."""


def plan_columns(told: Mapping[str, Any]) -> list[Column]:
    """Of what `plan_summary` gives: headings and cells, the candidate first, then what is wanted most first.

    The last column marks the Pareto front.
    """
    rows = told["candidates"]
    columns: list[Column] = [
        ("candidate", [row["name"] for row in rows]),
        ("replicas\nx GPUs", [f"{row['replicas'] or '-'} x {row['gpus_per_replica']}" for row in rows]),
        ("meets", ["out" if row["out"] is not None else "yes" if row["meets"] else "no" for row in rows]),
        ("USD\n/h", [three_digits(row["usd_per_hour"]) for row in rows]),
        ("USD/M\ntokens", [three_digits(row["usd_per_million_output_tokens"]) for row in rows]),
    ]
    if any(row["largest_rate_per_s"] or row["first_rate_not_borne_per_s"] for row in rows):
        columns.append(("most\n/s", [_bearing(row, "largest_rate_per_s") for row in rows]))
        columns.append(("head-\nroom", [_bearing(row, "headroom", " x") for row in rows]))
    for goal in goals_told(told):
        label, unit, scale = goal_label(goal)
        values = [None if row["at_rate"] is None else row["at_rate"]["values"][goal.name] for row in rows]
        cells = ["-" if value is None else three_digits(value * scale) for value in values]
        columns.append((f"{label.replace(' ', chr(10))} {unit}", cells))
    columns.append(("", ["*" if row["pareto"] else "" for row in rows]))
    return columns


def goals_told(told: Mapping[str, Any]) -> list[Goal]:
    """The goals of such a summary."""
    return [Goal(one["name"], one["limit"], one["above"], one["text"]) for one in told["goals"]]


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


def _bearing(row: Mapping[str, Any], key: str, unit: str = "") -> str:
    """What a candidate can bear, with a question mark where its runs are too short to trust it."""
    if row[key] is None:
        return "-"
    return f"{three_digits(row[key])}{'?' if row['requests_too_few_by'] else ''}{unit}"


def _width(column: Column, between: int) -> int:
    heading, cells = column
    return between + max(map(len, [*heading.split("\n"), *cells]))
