"""A folder of a plan: its candidates in the words and units of the terminal, what binds each, how the best held."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kvsim.reporting.finding import three_digits
from kvsim.reporting.inputs.exhibit import Exhibit, figures_in
from kvsim.reporting.inputs.sheet import Body, Cell, Sheet
from kvsim.reporting.plan.table import goals_told, plan_columns
from kvsim.reporting.plan.words import goal_label

_NOTE = (
    "On the front: no other candidate that keeps up is both cheaper and faster. Costs by the million are {costs}. "
    "What is marked ? rests on runs that are too short to trust it."
)


def plan_exhibit(told: Mapping[str, Any], folder: Path) -> Exhibit:
    """What `plan.json` says. Raises KeyError for what it lacks."""
    return Exhibit(
        name=told["scenario"],
        kind="plan",
        sheets=[_goals(told), _candidates(told), *_advice(told), *_verified(told)],
        figures=figures_in(folder),
        findings=[told["answer"]],
        provenance=told["sources"],
        notes=told["notes"],
        not_modelled=told["not_modelled"],
    )


def _goals(told: Mapping[str, Any]) -> Sheet:
    rate, times = told["rate_per_s"], told["replications"]
    asked = [[Cell("goal"), Cell(goal.text)] for goal in goals_told(told)]
    traffic = [] if rate is None else [[Cell("traffic"), Cell(f"{three_digits(rate)}/s")]]
    how = [
        [Cell("runs of each trial"), Cell(f"{times:,}")],
        [Cell("seed"), Cell(str(told["seed"]))],
        [Cell("largest rates are known to"), Cell(f"{told['tolerance']:.0%}")],
    ]
    return Sheet(title="What was asked", columns=["what", "value"], bodies=[Body("", [*asked, *traffic, *how])])


def _candidates(told: Mapping[str, Any]) -> Sheet:
    *columns, (_, marks) = plan_columns(told)
    heads = [heading.replace("-\n", "").replace("\n/", "/").replace("\n", " ") for heading, _ in columns]
    binds = [row["binds"] or "-" for row in told["candidates"]]
    texts = [*(cells for _, cells in columns), binds, ["yes" if mark else "no" for mark in marks]]
    rows = [[_cell(text) for text in row] for row in zip(*texts, strict=True)]
    return Sheet(
        title="Candidates",
        columns=[*heads, "binds", "on the front"],
        bodies=[Body("", rows)],
        note=_NOTE.format(costs=told["costs_are"]),
    )


def _advice(told: Mapping[str, Any]) -> list[Sheet]:
    """What to change next, or why a candidate is out."""
    rows = [
        [Cell(row["name"]), Cell(row["binds"] or "-"), Cell(row["next_change"] or f"Out: {row['out']}")]
        for row in told["candidates"]
        if row["next_change"] or row["out"]
    ]
    heads = ["candidate", "binds", "what to change next"]
    return [Sheet(title="What to change next", columns=heads, bodies=[Body("", rows)])] if rows else []


def _verified(told: Mapping[str, Any]) -> list[Sheet]:
    goals = goals_told(told)
    labels = [goal_label(goal) for goal in goals]
    rows = [
        [
            Cell(name),
            Cell("yes" if trial["meets"] else "no"),
            *(
                _cell("-" if (value := trial["values"][goal.name]) is None else three_digits(value * scale))
                for goal, (_, _, scale) in zip(goals, labels, strict=True)
            ),
        ]
        for name, trial in told["verified"].items()
    ]
    heads = ["candidate", "meets", *(f"{label} {unit}" for label, unit, _ in labels)]
    return [Sheet(title="On fresh seeds", columns=heads, bodies=[Body("", rows)])] if rows else []


def _cell(text: str) -> Cell:
    """A text as the terminal has it, sorted by the number that it begins with."""
    try:
        return Cell(text, float(text.split(" ")[0].rstrip("?").replace(",", "")))
    except ValueError:
        return Cell(text)
