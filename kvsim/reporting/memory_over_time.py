"""The figure of a run: whose the KV memory is over time, when requests lost theirs, who runs and waits."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kvsim.metrics.result import Result
from kvsim.reporting.memory_curve import MemoryCurve, memory_curve
from kvsim.reporting.style import (
    ALARM,
    CLASS_COLOURS,
    INK,
    PALE_INK,
    footer,
    house_style,
    new_figure,
    provenance_line,
)
from kvsim.step import CLASSES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HEIGHT_INCHES = 4.5
MINUTES_FROM_S = 1200.0
"""A run longer than this is drawn over minutes."""
THOUSANDS_FROM_TOKENS = 10_000
MARKS = (("preempted", "preempt", INK), ("rejected", "reject", ALARM), ("aborted", "abort", ALARM))
"""The rows of marks: label, the outcome of the events it shows, colour."""


def memory_over_time(result: Result) -> "Figure":
    """Draw the classes stacked up to the pool, marks where requests lost their memory, and counts.

    Memory is in tokens (left) and per cent of the pool (right), time in seconds or minutes. Raises ValueError
    where the run has no pool (`no-cache`) or records no time.
    """
    pool_tokens = result.metrics["pool_tokens"]
    if not pool_tokens:
        raise ValueError("result has no pool to draw")
    curve = memory_curve(result)
    per_unit_s, unit = (60.0, "min") if curve.time_s[-1] > MINUTES_FROM_S else (1.0, "s")
    with house_style():
        figure = new_figure(HEIGHT_INCHES)
        foot = 0.035 + 0.026 * (provenance_line(result).count("\n") + 1)
        grid = figure.add_gridspec(
            3, 1, height_ratios=(10, 1.9, 4), hspace=0.1, left=0.14, right=0.86, top=0.85, bottom=foot + 0.095
        )
        memory = figure.add_subplot(grid[0])
        marks = figure.add_subplot(grid[1], sharex=memory)
        counts = figure.add_subplot(grid[2], sharex=memory)
        _draw_memory(memory, curve, pool_tokens, per_unit_s)
        _draw_marks(marks, result, curve.time_s[-1], per_unit_s)
        _draw_counts(counts, curve, per_unit_s)
        memory.set_xlim(curve.time_s[0] / per_unit_s, curve.time_s[-1] / per_unit_s)
        means = "" if curve.mean_over_s is None else f"; each point the mean of {curve.mean_over_s:.2g} s"
        counts.set_xlabel(f"time ({unit}{means})")
        figure.text(0.012, 0.985, result.name, fontsize=9.5, fontweight="bold", va="top")
        figure.text(0.012, 0.943, _finding(result), va="top")
        _legend(figure, curve)
        footer(figure, result)
    return figure


def _finding(result: Result) -> str:
    metrics = result.metrics
    parts = []
    if metrics["mean_share"]["used"] is not None:
        parts.append(f"{metrics['mean_share']['used']:.0%} of the KV memory in use on average")
    if metrics["preemptions"]:
        parts.append(f"{metrics['preemptions']:,} preemption{'s' if metrics['preemptions'] > 1 else ''}")
    if metrics["rejected"]:
        parts.append(f"{metrics['rejected']:,} rejected")
    return ", ".join(parts)


def _draw_memory(axes: "Axes", curve: MemoryCurve, pool_tokens: int, per_unit_s: float) -> None:
    scale, unit = (1000, "thousand tokens") if pool_tokens >= THOUSANDS_FROM_TOKENS else (1, "tokens")
    shown = _shown_classes(curve)
    axes.stackplot(
        curve.time_s / per_unit_s,
        *(curve.slots[name] / scale for name in shown),
        colors=[CLASS_COLOURS[name] for name in shown],
        linewidth=0,
    )
    axes.axhline(pool_tokens / scale, color=INK, linewidth=0.8)
    axes.set_ylim(0, pool_tokens / scale * 1.02)
    axes.set_ylabel(f"KV memory ({unit})")
    axes.tick_params(labelbottom=False)
    percent = axes.secondary_yaxis("right", functions=_percent_of(pool_tokens / scale))
    percent.set_ylabel("% of the pool")
    percent.set_yticks([0, 25, 50, 75, 100])
    percent.spines["right"].set_visible(True)


def _percent_of(whole: float) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    return (lambda part: part / whole * 100, lambda percent: percent * whole / 100)


def _draw_marks(axes: "Axes", result: Result, end_s: float, per_unit_s: float) -> None:
    events = result.tables["events"]
    times_s, outcomes = events.get("time_s", ()), events.get("outcome", ())
    for row, (label, shown, colour) in enumerate(MARKS):
        at = [time for time, outcome in zip(times_s, outcomes, strict=True) if outcome == shown]
        at = [time / per_unit_s for time in at if time <= end_s]
        if at:
            axes.eventplot([at], lineoffsets=-row, linelengths=0.7, linewidths=0.7, colors=colour)
        axes.text(-0.015, -row, label, transform=axes.get_yaxis_transform(), ha="right", va="center", fontsize=6.5)
    axes.set_ylim(-len(MARKS) + 0.5, 0.5)
    axes.set_yticks([])
    axes.tick_params(labelbottom=False, length=0)
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)


def _draw_counts(axes: "Axes", curve: MemoryCurve, per_unit_s: float) -> None:
    from matplotlib.ticker import MaxNLocator

    time = curve.time_s / per_unit_s
    axes.plot(time, curve.running, color=CLASS_COLOURS["used"], label="running")
    axes.plot(time, curve.waiting, color=ALARM, linestyle=(0, (3, 1.2)), label="waiting")
    axes.set_ylim(0, max(1.0, float(curve.running.max()), float(curve.waiting.max())) * 1.08)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
    axes.set_ylabel("requests")
    axes.legend(
        loc="upper left",
        bbox_to_anchor=(1.0, 1.08),
        fontsize=7,
        handlelength=1.2,
        handletextpad=0.4,
        borderpad=0.2,
    )


def _legend(figure: "Figure", curve: MemoryCurve) -> None:
    from matplotlib.patches import Patch

    shown = _shown_classes(curve)
    handles: list[Any] = [
        Patch(facecolor=CLASS_COLOURS[name], edgecolor=PALE_INK, linewidth=0.4, label=name) for name in shown
    ]
    figure.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(-0.01, 0.915),
        ncols=len(handles),
        handlelength=1.0,
        handleheight=0.9,
        handletextpad=0.4,
        columnspacing=0.9 if len(handles) < len(CLASSES) else 0.5,
        fontsize=8 if len(handles) < len(CLASSES) - 1 else 7,
    )


def _shown_classes(curve: MemoryCurve) -> list[str]:
    return [name for name in CLASSES if name in ("used", "free") or curve.slots[name].any()]
