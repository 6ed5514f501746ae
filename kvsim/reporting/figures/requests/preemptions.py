"""Requests that lose their memory: how often over time, and what it costs in tokens computed again."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kvsim.metrics.result import Result
from kvsim.reporting.figures.frame import LEGEND_LINE, Frame, beside, columns_for, lines_for, look_of, short
from kvsim.reporting.figures.memory.over_time import time_unit
from kvsim.reporting.style import CLASS_COLOURS, house_style

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    Values = NDArray[np.float64]

COSTS: Mapping[str, tuple[str, str]] = {
    "lost_tokens": ("given up", CLASS_COLOURS["internal"]),
    "swapped_tokens": ("moved to host memory", CLASS_COLOURS["dead"]),
    "rehit_tokens": ("found cached again", CLASS_COLOURS["cached"]),
    "recomputed_tokens": ("computed again", CLASS_COLOURS["used"]),
}
"""Metrics of preemption in tokens: what they are called, and their colours."""

POINTS = 400
"""Corners of a line at most."""

ROOM = 1.2
THOUSANDS_FROM_TOKENS = 10_000

# Inches.
PANEL, BAR, GAP, AXIS = 1.15, 0.1, 0.1, 0.42


def has_preemptions(results: Sequence[Result]) -> bool:
    """Some request of some result lost its memory while it ran."""
    return any(result.metrics["preemptions"] for result in results)


def preemptions(results: Sequence[Result]) -> "Figure":
    """Above, preemptions up to each moment, a line a result; below, tokens that they cost in all, bars for each.

    Three numbers stay apart: tokens whose KV was given up, tokens computed again, tokens found cached again. Raises
    ValueError where nobody was preempted.
    """
    if not has_preemptions(results):
        raise ValueError("results must hold one with preemptions")
    costs = [name for name in COSTS if any(result.metrics.get(name) for result in results)]
    names = [short(result.name) for result in results]
    lines_inches = LEGEND_LINE * lines_for(names) + 0.06 if len(results) > 1 else 0.0
    costs_inches = LEGEND_LINE + 0.06
    bars = len(results) * (len(costs) * BAR + GAP)
    last_s = max(float(result.metrics["simulated_s"]) for result in results)
    per_unit_s, unit = time_unit(last_s)
    with house_style():
        frame = Frame(
            results,
            title="Preemptions and what they cost",
            finding=_finding(results),
            note="counts of the whole run",
            room_inches=lines_inches + PANEL + AXIS + 0.1 + costs_inches + bars + AXIS,
        )
        over = frame.axes(lines_inches, PANEL)
        for place, (result, name) in enumerate(zip(results, names, strict=True)):
            colour, style = look_of(place)
            time_s, count = _so_far(result)
            over.step(time_s / per_unit_s, count, where="post", color=colour, linestyle=style, label=name)
        over.set_xlim(0, last_s / per_unit_s)
        over.set_ylim(0, None)
        over.set_xlabel(f"time ({unit})")
        over.set_ylabel("preemptions\nso far")
        over.yaxis.set_major_formatter("{x:,g}")
        left = beside(names)
        top = lines_inches + PANEL + AXIS + 0.1
        axes = frame.axes(top + costs_inches, bars, left=max(0.7, left), right=0.2)
        _costs(axes, results, costs)
        axes.set_yticks([place * (len(costs) * BAR + GAP) for place in range(len(names))], names)
        if lines_inches:
            frame.legend(0, over.get_legend_handles_labels()[0], columns_for(names), left=0.7)
        frame.legend(top, axes.get_legend_handles_labels()[0], columns=len(costs), left=0.2)
    return frame.figure


def _costs(axes: "Axes", results: Sequence[Result], costs: Sequence[str]) -> None:
    most = max(result.metrics.get(name) or 0 for result in results for name in costs)
    scale, unit = (1000, "thousand tokens") if most >= THOUSANDS_FROM_TOKENS else (1, "tokens")
    step = len(costs) * BAR + GAP
    for number, name in enumerate(costs):
        label, colour = COSTS[name]
        values = [(result.metrics.get(name) or 0) / scale for result in results]
        at = [place * step + (number - (len(costs) - 1) / 2) * BAR for place in range(len(results))]
        axes.barh(at, values, BAR * 0.92, color=colour, label=label, linewidth=0)
        for place, value, result in zip(at, values, results, strict=True):
            axes.text(value, place, f" {result.metrics.get(name) or 0:,}", va="center", fontsize=7)
    axes.set_xlim(0, ROOM * most / scale or 1)
    axes.set_ylim((len(results) - 0.5) * step, -0.5 * step)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(unit)
    axes.xaxis.set_major_formatter("{x:,g}")


def _so_far(result: Result) -> "tuple[Values, Values]":
    """Moments, and how many preemptions there had been by then; at most so many corners."""
    import numpy as np

    times_s = np.sort(np.asarray(result.tables["preemptions"]["time_s"], dtype=float))
    ends_s = float(result.metrics["simulated_s"])
    if len(times_s) > POINTS:
        moments_s = np.linspace(0, ends_s, POINTS + 1)
        return moments_s, np.searchsorted(times_s, moments_s, side="right").astype(float)
    moments_s = np.concatenate(([0.0], times_s, [ends_s]))
    return moments_s, np.concatenate((np.arange(len(times_s) + 1), [len(times_s)])).astype(float)


def _finding(results: Sequence[Result]) -> str:
    worst = max(results, key=lambda result: int(result.metrics["preemptions"]))
    best = min(results, key=lambda result: int(result.metrics["preemptions"]))
    metrics = worst.metrics
    text = (
        f"{short(worst.name)}: {metrics['preemptions']:,} preemptions, {metrics['recomputed_tokens']:,} tokens "
        "computed again"
    )
    return text if best is worst else f"{text}; {short(best.name)}: {best.metrics['preemptions']:,}"
