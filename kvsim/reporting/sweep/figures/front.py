"""Any other shape: every point by what it gives and how long people wait for it."""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kvsim.reporting.style import PALE_INK, new_figure
from kvsim.reporting.sweep.figures.common import (
    AXIS,
    LOOKS,
    foot,
    foot_inches,
    head_inches,
    headline,
    legend,
    scale_of_values,
)
from kvsim.reporting.sweep.measures import Measure
from kvsim.reporting.sweep.points import At, goals, pareto
from kvsim.reporting.sweep.shape import Shape
from kvsim.study.sweeps.sweep import Sweep
from kvsim.study.values import shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMED = 6
"""Points of the front that are named below the figure, spread evenly along it."""

_PANEL, _TITLE, _LINE = 2.4, 0.12, 0.125
_LETTERS = 92
"""Letters of a name that fit in a line."""


def draw_front(sweep: Sweep, form: Shape, told: Sequence[Measure]) -> "Figure":
    """Latency against throughput, whatever is told; a line joins the points that no other beats (the Pareto front)."""
    points = [at for group in form.groups.values() for at in group]
    low, high = goals(points)
    front = sorted(pareto(points, low, high), key=lambda at: (at.mean(high) or 0, at.mean(low) or 0))
    named = _named(front)
    head, names_height = head_inches([*form.groups, "front"]), _LINE * len(named) + 0.05
    below = AXIS + names_height + foot_inches(sweep)
    height = head + _TITLE + _PANEL + below
    figure = new_figure(height)
    axes = figure.add_axes((0.13, below / height, 0.855, _PANEL / height))
    for (colour, marker, size), (name, group) in zip(LOOKS, form.groups.items(), strict=False):
        there = [
            (more, less) for at in group if (more := at.mean(high)) is not None and (less := at.mean(low)) is not None
        ]
        x, y = [more for more, _ in there], [less for _, less in there]
        axes.plot(x, y, marker, color=colour, markersize=size * 0.8, alpha=0.8, label=name or "points")
    x, y = [at.mean(high) or 0.0 for at in front], [at.mean(low) or 0.0 for at in front]
    axes.plot(x, y, color=PALE_INK, linewidth=0.9, zorder=0, drawstyle="steps-pre", label="no other point is better")
    scale_of_values(axes, low, [value for at in points if (value := at.mean(low)) is not None])
    numbers: dict[tuple[float, float], list[str]] = {}  # of points that lie on each other all together
    for number, at in enumerate(named, 1):
        numbers.setdefault((at.mean(high) or 0.0, at.mean(low) or 0.0), []).append(str(number))
        line = textwrap.shorten(f"{number}  {_short(at)}", _LETTERS, placeholder=" ...")
        at_inches = foot_inches(sweep) + names_height - number * _LINE
        figure.text(0.13, at_inches / height, line, fontsize=7, va="bottom")
    for where, told_there in numbers.items():
        axes.annotate(
            ", ".join(told_there), where, xytext=(0, -5), textcoords="offset points", fontsize=7, ha="center", va="top"
        )
    axes.set_xlabel(high.title)
    axes.set_ylabel(low.title)
    found = f"{len(front)} of {len(points)} points are beaten by no other in both"
    headline(figure, sweep, f"means of {sweep.identity.replications} replications", found)
    legend(figure, axes)
    foot(figure, sweep)
    return figure


def _named(front: Sequence[At]) -> list[At]:
    if len(front) <= NAMED:
        return list(front)
    step = (len(front) - 1) / (NAMED - 1)
    return [front[round(number * step)] for number in range(NAMED)]


def _short(at: At) -> str:
    """A point in a few words: its keys without what stands before their last dot."""
    changes = [f"{key.rpartition('.')[2]} {shown(value)}" for key, value in at.changes.items()]
    return ", ".join(([at.variant] if at.variant else []) + changes)
