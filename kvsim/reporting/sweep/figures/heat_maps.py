"""Two axes of numbers in all combinations: a row of maps a measure, a map a group."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kvsim.reporting.finding import three_digits
from kvsim.reporting.style import INK, new_figure
from kvsim.reporting.sweep.figures.common import AXIS, HEAD, foot, foot_inches, headline, wide
from kvsim.reporting.sweep.measures import Measure
from kvsim.reporting.sweep.points import At
from kvsim.reporting.sweep.shape import Shape
from kvsim.study.sweeps.sweep import Sweep
from kvsim.study.values import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

MOST_ROWS = 2

_MAP, _TITLE, _NAME = 1.5, 0.26, 0.16
_LEFT, _RIGHT, _BETWEEN = 0.14, 0.9, 0.025
_MOST_CELLS = 50
"""Cells beside each other in one row of maps that still have room for their numbers, by three letters each."""


def draw_heat_maps(sweep: Sweep, form: Shape, told: Sequence[Measure]) -> "Figure":
    """The mean of the replications at each point: one colour scale a measure, the number in each cell with room."""
    rows, below = told[:MOST_ROWS], AXIS + foot_inches(sweep)
    above = _TITLE + (_NAME if any(form.groups) else 0)
    height = HEAD + len(rows) * (above + _MAP) + below
    figure = new_figure(height)
    width = (_RIGHT - _LEFT - _BETWEEN * (len(form.groups) - 1)) / len(form.groups)
    for row, measure in enumerate(rows):
        bottom = height - HEAD - (row + 1) * (above + _MAP)
        known = [value for points in form.groups.values() for at in points if (value := at.mean(measure)) is not None]
        scale = _scale(known)
        figure.text(_LEFT, (bottom + _MAP + above - 0.09) / height, measure.title, fontsize=8, va="top")
        for column, (name, points) in enumerate(form.groups.items()):
            left = _LEFT + column * (width + _BETWEEN)
            axes = figure.add_axes((left, bottom / height, width, _MAP / height))
            image = _heat_map(axes, form, points, measure, scale)
            axes.set_title(name, fontsize=7.5, pad=3)
            axes.tick_params(labelbottom=row == len(rows) - 1, labelleft=column == 0)
            if row == len(rows) - 1:
                axes.set_xlabel(form.axes[0].key, fontsize=7.5)
            if column == 0:
                axes.set_ylabel(form.axes[1].key, fontsize=7.5)
        bar = figure.add_axes((_RIGHT + 0.015, bottom / height, 0.018, _MAP / height))
        figure.colorbar(image, cax=bar, format="{x:g}")
        bar.yaxis.set_minor_formatter("")
        bar.tick_params(labelsize=7)
    headline(figure, sweep, f"means of {sweep.identity.replications} replications")
    foot(figure, sweep)
    return figure


def _scale(known: Sequence[float]) -> "Normalize":
    from matplotlib.colors import LogNorm, Normalize

    least, most = min(known, default=0.0), max(known, default=1.0)
    return LogNorm(least, most) if wide(known) else Normalize(least, most)


def _heat_map(axes: "Axes", form: Shape, points: Sequence[At], measure: Measure, scale: "Normalize") -> "AxesImage":
    import numpy as np

    across, up = (sorted(one.values, key=one.number) for one in form.axes)
    cells = np.full((len(up), len(across)), np.nan)
    for at in points:
        value = at.mean(measure)
        place = up.index(at.changes[form.axes[1].key]), across.index(at.changes[form.axes[0].key])
        cells[place] = np.nan if value is None else value
    # Light is good.
    colours = "cividis_r" if measure.better == "low" else "cividis"
    image = axes.imshow(cells, origin="lower", aspect="auto", norm=scale, cmap=colours)
    axes.set_xticks(range(len(across)), [shown(value) for value in across], fontsize=7)
    axes.set_yticks(range(len(up)), [shown(value) for value in up], fontsize=7)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    if len(across) * len(form.groups) * 3 <= _MOST_CELLS:
        for (y, x), value in np.ndenumerate(cells):
            if np.isfinite(value):
                red, green, blue, _ = image.get_cmap()(scale(value))
                colour = INK if 0.3 * red + 0.6 * green + 0.1 * blue > 0.5 else "white"
                axes.text(x, y, three_digits(value), ha="center", va="center", fontsize=7, color=colour)
    return image
