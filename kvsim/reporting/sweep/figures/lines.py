"""One axis of numbers: a panel a measure, a line with its band a group."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kvsim.reporting.finding import three_digits
from kvsim.reporting.style import PALE_INK, new_figure
from kvsim.reporting.sweep.figures.common import (
    AXIS,
    LOOKS,
    Look,
    foot,
    foot_inches,
    head_inches,
    headline,
    labelled,
    legend,
    scale_of_values,
    wide,
)
from kvsim.reporting.sweep.measures import GOODPUT, MET, Measure
from kvsim.reporting.sweep.points import At
from kvsim.reporting.sweep.shape import Shape
from kvsim.reporting.sweep.sustained import MET_SHARE, RATE, sustained
from kvsim.study.sweeps.sweep import Sweep
from kvsim.study.values import Axis, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_PANELS = 3

MOST_SETTINGS = 3
"""From so many settings on, a line above the figure has no room for the rate that each keeps."""

_PANEL, _TITLE = 1.0, 0.28
_HIGH = 50
"""Percent above which a number has its place below its point."""
_TICK_LETTERS = 60
"""Letters of tick labels that fit below the figure."""


def draw_lines(sweep: Sweep, form: Shape, told: Sequence[Measure]) -> "Figure":
    """The mean of the replications at each point, in a band from the least to the most of them."""
    axis = form.axes[0]
    panels = _panels(axis, told)
    named = [name for name in form.groups if name]
    head, below = head_inches(named), AXIS + foot_inches(sweep)
    height = head + len(panels) * (_TITLE + _PANEL) + below
    figure = new_figure(height)
    knees = [_knee(sweep, axis, points) for points in form.groups.values()]
    for number, measure in enumerate(panels):
        bottom = height - head - (number + 1) * (_TITLE + _PANEL)
        axes = figure.add_axes((0.1, bottom / height, 0.885, _PANEL / height))
        for look, (name, points) in zip(LOOKS, form.groups.items(), strict=False):
            _line(axes, axis, points, measure, look, name)
        values = [value for points in form.groups.values() for at in points for value in at.values(measure)]
        scale_of_values(axes, measure, values)
        title = measure.title
        if measure is MET:
            title += f"; dotted: the {MET_SHARE * MET.scale:g} that a rate is kept by"
            _within(axes, axis, list(form.groups.values()))
        _ticks(axes, axis)
        for look, kept in zip(LOOKS, knees, strict=False):
            if kept is not None:
                axes.axvline(kept, color=look[0], linewidth=0.7, linestyle=(0, (4, 2)), zorder=0)
        axes.set_title(title, fontsize=8, fontweight="normal", pad=3)
        axes.tick_params(labelbottom=number == len(panels) - 1)
    axes.set_xlabel(labelled(axis))
    count = sweep.identity.replications
    how = f"mean of {count} replications, band from the least to the most"
    if any(at.saturated for points in form.groups.values() for at in points):
        how += "; hollow: the queue grows"
    headline(figure, sweep, how, _finding(sweep, form, panels))
    if named:
        legend(figure, axes)
    foot(figure, sweep)
    return figure


def _within(axes: "Axes", axis: Axis, groups: Sequence[Sequence[At]]) -> None:
    """The share that counts; of a single line also the numbers, as a percent decides."""
    axes.axhline(MET_SHARE * MET.scale, color=PALE_INK, linewidth=0.6, linestyle=(0, (1, 2)), zorder=0)
    for at in groups[0] if len(groups) == 1 else ():
        met = at.mean(MET)
        if met is not None:
            place = (axis.number(at.changes.get(axis.key)), met)
            below = met > _HIGH
            axes.annotate(
                three_digits(met),
                place,
                (0, -5 if below else 5),
                textcoords="offset points",
                ha="center",
                va="top" if below else "bottom",
                fontsize=7,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
            )


def _panels(axis: Axis, told: Sequence[Measure]) -> Sequence[Measure]:
    """The first measures; over the rate the share within the goals goes before goodput, as it says which are kept."""
    if axis.key == RATE and MET in told and GOODPUT in told:
        told = [one for one in told if one is not MET]
        told.insert(told.index(GOODPUT), MET)
    return told[:MOST_PANELS]


def _line(axes: "Axes", axis: Axis, points: Sequence[At], measure: Measure, look: Look, name: str) -> None:
    found = sorted((axis.number(at.changes.get(axis.key)), at.values(measure)) for at in points if at.values(measure))
    if not found:
        return
    colour, marker, size = look
    x = [number for number, _ in found]
    means = [sum(v) / len(v) for _, v in found]
    axes.plot(x, means, color=colour, marker=marker, markersize=size, label=name, clip_on=False)
    grown = [(axis.number(at.changes.get(axis.key)), at.mean(measure)) for at in points if at.saturated]
    for number, mean in grown:
        if mean is not None:
            axes.plot(
                number, mean, color=colour, marker=marker, markersize=size, markerfacecolor="white", clip_on=False
            )
    low, high = [min(values) for _, values in found], [max(values) for _, values in found]
    axes.fill_between(x, low, high, color=colour, alpha=0.18, linewidth=0)


def _knee(sweep: Sweep, axis: Axis, points: Sequence[At]) -> float | None:
    """Where the axis is the rate: the largest that these points keep."""
    if axis.key != RATE:
        return None
    kept = [one.kept for one in sustained(sweep, points) if one.kept is not None]
    numbers = {shown(value): axis.number(value) for value in axis.values}
    return max((numbers[rate] for rate in kept), default=None)


def _finding(sweep: Sweep, form: Shape, panels: Sequence[Measure]) -> str:
    """Which rates are kept; of any other axis, how far the first measure goes."""
    axis, points = form.axes[0], [at for group in form.groups.values() for at in group]
    found = sustained(sweep, points) if axis.key == RATE else []
    if found:
        said = [f"{one.name} {one.text}".strip() for one in found]
        dashed = f"dashed: the largest rate{'s' if len(said) > 1 else ''} kept"
        return f"{dashed}; {'; '.join(said)}" if len(said) < MOST_SETTINGS else dashed
    values = [mean for at in points if (mean := at.mean(panels[0])) is not None] if panels else []
    if not values:
        return ""
    return f"{panels[0].title}: {three_digits(min(values))} to {three_digits(max(values))}"


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
