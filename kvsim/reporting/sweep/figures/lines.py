"""One axis of numbers: a panel a measure, a line with its band a group."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kvsim.reporting.style import new_figure
from kvsim.reporting.sweep.figures.common import (
    AXIS,
    LOOKS,
    Look,
    foot,
    foot_inches,
    head_inches,
    headline,
    legend,
    scale_of_values,
    wide,
)
from kvsim.reporting.sweep.measures import Measure
from kvsim.reporting.sweep.points import At
from kvsim.reporting.sweep.shape import Shape
from kvsim.study.sweeps.sweep import Sweep
from kvsim.study.values import Axis, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_PANELS = 3

_PANEL, _TITLE = 1.0, 0.28
_TICK_LETTERS = 60
"""Letters of tick labels that fit below the figure."""


def draw_lines(sweep: Sweep, form: Shape, told: Sequence[Measure]) -> "Figure":
    """The mean of the replications at each point, in a band from the least to the most of them."""
    axis, panels = form.axes[0], told[:MOST_PANELS]
    named = [name for name in form.groups if name]
    head, below = head_inches(named), AXIS + foot_inches(sweep)
    height = head + len(panels) * (_TITLE + _PANEL) + below
    figure = new_figure(height)
    for number, measure in enumerate(panels):
        bottom = height - head - (number + 1) * (_TITLE + _PANEL)
        axes = figure.add_axes((0.1, bottom / height, 0.885, _PANEL / height))
        for look, (name, points) in zip(LOOKS, form.groups.items(), strict=False):
            _line(axes, axis, points, measure, look, name)
        values = [value for points in form.groups.values() for at in points for value in at.values(measure)]
        scale_of_values(axes, measure, values)
        _ticks(axes, axis)
        axes.set_title(measure.title, fontsize=8, fontweight="normal", pad=3)
        axes.tick_params(labelbottom=number == len(panels) - 1)
    axes.set_xlabel(axis.key)
    count = sweep.identity.replications
    headline(figure, sweep, f"mean of {count} replications, band from the least to the most")
    if named:
        legend(figure, axes)
    foot(figure, sweep)
    return figure


def _line(axes: "Axes", axis: Axis, points: Sequence[At], measure: Measure, look: Look, name: str) -> None:
    found = sorted((axis.number(at.changes.get(axis.key)), at.values(measure)) for at in points if at.values(measure))
    if not found:
        return
    colour, marker, size = look
    x = [number for number, _ in found]
    axes.plot(
        x, [sum(v) / len(v) for _, v in found], color=colour, marker=marker, markersize=size, label=name, clip_on=False
    )
    low, high = [min(values) for _, values in found], [max(values) for _, values in found]
    axes.fill_between(x, low, high, color=colour, alpha=0.18, linewidth=0)


def _ticks(axes: "Axes", axis: Axis) -> None:
    """The points themselves, as they were written, where there is room for them."""
    numbers = list(axis.numbers or ())
    if wide(numbers):
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
    labels = [shown(value) for value in axis.values]
    if sum(len(label) + 2 for label in labels) <= _TICK_LETTERS:
        axes.set_xticks(numbers, labels)
        axes.set_xticks([], minor=True)
