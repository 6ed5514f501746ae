"""The figure of a comparison: the KV memory of every variant over the same time and the same pool."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kvsim.metrics.result import Result
from kvsim.reporting.comparison import waste_share
from kvsim.reporting.figures.frame import LEGEND_LINE, Frame, fitted, short
from kvsim.reporting.figures.memory.curve import memory_curve
from kvsim.reporting.figures.memory.over_time import (
    draw_memory,
    draw_window_end,
    legend,
    means_over,
    shown_classes,
    time_unit,
)
from kvsim.reporting.finding import three_digits
from kvsim.reporting.style import INK, WIDTH_INCHES, house_style, text_inches

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Inches.
PANEL, TITLE, AXIS = 0.78, 0.2, 0.42
LEFT, RIGHT, GAP = 0.66, 0.08, 0.1

NAME, SAID = 8.0, 7.0
"""Points of the name of a panel, and of what is said beside it."""
BELOW = 0.16
"""Of a panel's height a line of its title takes."""


def memory_side_by_side(results: Sequence[Result]) -> "Figure":
    """Draw the classes of each result in a panel of its own, below each other on the same axes: time in seconds or
    minutes, memory in per cent of the result's pool.

    The title of a panel says what it did to the requests, a dashed line where the measured window ends. Raises
    ValueError for no results, and where one has no pool or records no time.
    """
    if not results:
        raise ValueError("results must hold at least one result")
    if not all(result.metrics["pool_tokens"] for result in results):
        raise ValueError("results hold one without a pool to draw")
    curves = [memory_curve(result) for result in results]
    last_s = max(float(curve.time_s[-1]) for curve in curves)
    per_unit_s, unit = time_unit(last_s)
    with house_style():
        key_inches = LEGEND_LINE + 0.1
        width = WIDTH_INCHES - LEFT - RIGHT - GAP
        named = [(fitted(result.name, width, NAME, bold=True), _effect(result)) for result in results]
        # Where any name leaves too little room for what is said beside it, that stands below the names.
        beside = all(text_inches(name, NAME, bold=True) + text_inches(said, SAID) < width for name, said in named)
        title = TITLE if beside else 2 * TITLE
        panels = len(results) * (title + PANEL)
        frame = Frame(
            results,
            title="KV memory over time",
            finding=_finding(results),
            note=means_over(results),
            room_inches=key_inches + panels + AXIS,
        )
        for row, (result, curve, (name, said)) in enumerate(zip(results, curves, named, strict=True)):
            axes = frame.axes(key_inches + row * (title + PANEL) + title, PANEL, left=LEFT, right=RIGHT)
            draw_memory(axes, curve, result.metrics["pool_tokens"], per_unit_s, whole=100)
            draw_window_end(axes, result, per_unit_s)
            axes.set_xlim(0, last_s / per_unit_s)
            axes.set_yticks([0, 50, 100])
            place: dict[str, Any] = {"transform": axes.transAxes, "va": "bottom"}
            axes.text(0, 1.05 if beside else 1.05 + BELOW, name, fontsize=NAME, fontweight="bold", **place)
            axes.text(1 if beside else 0, 1.05, said, fontsize=SAID, ha="right" if beside else "left", **place)
            axes.tick_params(bottom=row == len(results) - 1)
        axes.tick_params(labelbottom=True)
        axes.set_xlabel(f"time ({unit})")
        middle = key_inches + panels / 2
        frame.text(0.06, middle, "% of the KV pool", rotation=90, ha="left", va="center", color=INK)
        legend(frame.figure, shown_classes(curves), frame.down(0))
    return frame.figure


def _finding(results: Sequence[Result]) -> str:
    """The least and the most of what they hold that is wasted."""
    wastes = [(waste, result.name) for result in results if (waste := waste_share(result.metrics)) is not None]
    if not wastes:
        return ""
    (least, best), (most, worst) = (end(wastes, key=lambda one: one[0]) for end in (min, max))
    text = f"{least:.0%} of what it holds is wasted under {short(best)}"
    return text if best == worst else f"{text}, {most:.0%} under {short(worst)}"


def _effect(result: Result) -> str:
    """What became of the requests, as short as a panel's title must be."""
    metrics, waste = result.metrics, waste_share(result.metrics)
    parts = [] if waste is None else [f"{waste:.0%} wasted"]
    if not metrics["finished"]:
        return "none finished" if not metrics["rejected"] else f"{metrics['rejected']:,} rejected, none finished"
    if metrics["mean_running"] is not None:
        parts.append(f"{metrics['mean_running']:,.0f} running")
    if metrics["ttft_s"] is not None:
        parts.append(f"TTFT p50 {three_digits(metrics['ttft_s']['p50'])} s")
    if metrics["preemptions"]:
        parts.append(f"{metrics['preemptions']:,} preemptions")
    return ", ".join(parts)
