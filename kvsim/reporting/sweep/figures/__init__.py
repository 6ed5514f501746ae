"""The figures of a sweep: lines with bands, heat maps, or what each point gives and costs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kvsim.reporting.style import house_style
from kvsim.reporting.sweep.figures.front import draw_front
from kvsim.reporting.sweep.figures.heat_maps import draw_heat_maps
from kvsim.reporting.sweep.figures.lines import draw_lines
from kvsim.reporting.sweep.measures import Measure
from kvsim.reporting.sweep.shape import Shape
from kvsim.study.sweeps.sweep import Sweep

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DRAW = {"line": draw_lines, "heat": draw_heat_maps, "pareto": draw_front}


def draw_sweep(sweep: Sweep, form: Shape, told: Sequence[Measure]) -> "Figure":
    """The figure of the kind that `form` says, of the first of the measures."""
    with house_style():
        return _DRAW[form.kind](sweep, form, told)
