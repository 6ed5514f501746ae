"""Requests running and waiting over time, of several variants in one figure."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kvsim.metrics.result import Result
from kvsim.reporting.figures.frame import LEGEND_LINE, Frame, columns_for, lines_for, look_of, over, short
from kvsim.reporting.figures.memory.levels import levels
from kvsim.reporting.figures.memory.over_time import time_unit
from kvsim.reporting.finding import who
from kvsim.reporting.style import house_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COUNTS = ("running", "waiting")

# Inches.
PANEL, GAP, AXIS = 1.15, 0.14, 0.42


def counts(results: Sequence[Result]) -> "Figure":
    """A panel of requests running, and one of requests waiting, with a line for each result over the same time.

    Raises ValueError for no results, and where one records no time.
    """
    from matplotlib.ticker import MaxNLocator

    if not results:
        raise ValueError("results must hold at least one result")
    traced = [levels(result, COUNTS) for result in results]
    last_s = max(float(found.time_s[-1]) for found in traced)
    per_unit_s, unit = time_unit(last_s)
    names = [short(result.name) for result in results]
    key_inches = LEGEND_LINE * lines_for(names) + 0.06
    with house_style():
        frame = Frame(
            results,
            title="Requests running and waiting",
            finding=_finding(results),
            note=f"means over {over(results)}; a longer line took longer for them",
            room_inches=key_inches + 2 * PANEL + GAP + AXIS,
        )
        panels = []
        for place, name in enumerate(COUNTS):
            axes = frame.axes(key_inches + place * (PANEL + GAP), PANEL)
            for number, (label, found) in enumerate(zip(names, traced, strict=True)):
                colour, style = look_of(number)
                time = found.time_s / per_unit_s
                axes.plot(time, found.columns[name], color=colour, linestyle=style, linewidth=1.0, label=label)
            axes.set_xlim(0, last_s / per_unit_s)
            most = max(float(found.columns[name].max()) for found in traced)
            axes.set_ylim(0, None if most else 1)
            axes.yaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 2.5, 5, 10]))
            axes.set_ylabel(f"{who(results)} {name}")
            axes.tick_params(labelbottom=place == len(COUNTS) - 1)
            panels.append(axes)
        axes.set_xlabel(f"time ({unit})")
        frame.figure.align_ylabels(panels)
        frame.legend(0, panels[0].get_legend_handles_labels()[0], columns_for(names), left=0.7)
    return frame.figure


def _finding(results: Sequence[Result]) -> str:
    timed = [result for result in results if result.metrics["mean_running"] is not None]
    if not timed:
        return ""
    ranked = sorted(timed, key=lambda result: float(result.metrics["mean_running"]))
    least, most = ranked[0], ranked[-1]

    def said(result: Result) -> str:
        metrics = result.metrics
        waiting = metrics["mean_waiting"]
        return f"{short(result.name)} runs {metrics['mean_running']:,.1f}" + (
            "" if waiting is None else f" and lets {waiting:,.1f} wait"
        )

    return said(most) if least is most else f"{said(most)}; {said(least)}"
