"""The figure of a run: whose the KV memory is over time, when requests lost theirs, who runs and waits."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from kvsim.metrics.result import Result
from kvsim.reporting.comparison import waste_share
from kvsim.reporting.figures.frame import fitted, over
from kvsim.reporting.figures.memory.curve import MemoryCurve, memory_curve
from kvsim.reporting.finding import who
from kvsim.reporting.style import (
    ALARM,
    CLASS_COLOURS,
    INK,
    MARGIN_INCHES,
    PALE_INK,
    WIDTH_INCHES,
    footer,
    footer_inches,
    house_style,
    new_figure,
)
from kvsim.step import CLASSES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MINUTES_FROM_S = 1200.0
"""A run longer than this is drawn over minutes."""
THOUSANDS_FROM_TOKENS = 10_000
ENDED = (("rejected", "reject"), ("aborted", "abort"))
"""Rows of marks below that of the preemptions: label, and the outcome of the events it shows."""
OUT_OF_MEMORY = (("no free slots", "capacity"), ("no fitting hole", "fragmentation"), ("no workspace", "activation"))
"""Rows below those: requests that could not have their slots at once, label and cause."""
MOST_MARKS = 500
"""Marks of a row that can be told apart."""
MARK_SHARE = 0.7
"""Height of a mark, of that of its row."""

Row = tuple[str, list[float], str]
"""Marks of one kind: label, times in seconds, colour."""

# Heights in inches, from the top down.
HEAD, MEMORY, MARK, COUNT, AXIS = 0.83, 1.8, 0.16, 0.62, 0.42


def memory_over_time(result: Result) -> "Figure":
    """Draw the classes stacked up to the pool, marks where requests lost their memory, and counts.

    Memory is in tokens (left) and per cent of the pool (right), time in seconds or minutes; a dashed line shows where
    the measured window ends, if the run goes on. Raises ValueError where the run has no pool (`no-cache`) or records
    no time.
    """
    pool_tokens = result.metrics["pool_tokens"]
    if not pool_tokens:
        raise ValueError("result has no pool to draw")
    curve = memory_curve(result)
    per_unit_s, unit = time_unit(curve.time_s[-1])
    rows = _marks(result, curve.time_s[-1])
    marks_inches = max(0.02, MARK * len(rows))
    with house_style():
        foot = footer_inches([result]) + AXIS
        heights = (MEMORY, marks_inches, COUNT, COUNT)
        gap = 0.09
        height = HEAD + sum(heights) + 3 * gap + foot
        figure = new_figure(height)
        grid = figure.add_gridspec(
            4, 1, height_ratios=heights, hspace=gap / (sum(heights) / 4),
            left=0.16, right=0.87, top=1 - HEAD / height, bottom=foot / height,
        )  # fmt: skip
        memory = figure.add_subplot(grid[0])
        marks, running, waiting = (figure.add_subplot(grid[row], sharex=memory) for row in (1, 2, 3))
        draw_memory(memory, curve, pool_tokens, per_unit_s)
        _label_memory(memory, pool_tokens)
        _draw_marks(marks, rows, curve.time_s[0], curve.time_s[-1], per_unit_s)
        counted = who([result])
        _draw_count(running, curve.time_s / per_unit_s, curve.running, CLASS_COLOURS["used"], f"{counted}\nrunning")
        _draw_count(waiting, curve.time_s / per_unit_s, curve.waiting, ALARM, f"{counted}\nwaiting")
        memory.set_xlim(curve.time_s[0] / per_unit_s, curve.time_s[-1] / per_unit_s)
        running.tick_params(labelbottom=False)
        figure.align_ylabels([memory, running, waiting])
        means = "" if curve.mean_over_s is None else f"; each point the mean of {curve.mean_over_s:.2g} s"
        waiting.set_xlabel(f"time ({unit}{means})")
        for axes in (memory, running, waiting):
            draw_window_end(axes, result, per_unit_s)
        name = fitted(result.name, WIDTH_INCHES - 2 * MARGIN_INCHES, 9.5, bold=True)
        figure.text(0.012, 1 - 0.07 / height, name, fontsize=9.5, fontweight="bold", va="top")
        figure.text(0.012, 1 - 0.25 / height, _finding(result), va="top", fontsize=8)
        figure.text(0.012, 1 - 0.42 / height, means_over([result]), va="top", fontsize=7, color=PALE_INK)
        legend(figure, shown_classes([curve]), 1 - 0.55 / height)
        footer(figure, [result])
    return figure


def time_unit(length_s: float) -> tuple[float, str]:
    """The seconds of the unit that a run of this length is drawn in, and its name."""
    return (60.0, "min") if length_s > MINUTES_FROM_S else (1.0, "s")


def draw_memory(
    axes: "Axes", curve: MemoryCurve, pool_tokens: int, per_unit_s: float, whole: float | None = None
) -> None:
    """Stack the classes up to the pool, in (thousand) tokens, or so that the pool measures `whole`."""
    import numpy as np

    scale = _scale(pool_tokens)[0] if whole is None else pool_tokens / whole
    shown = shown_classes([curve])
    time = curve.time_s / per_unit_s
    around = np.concatenate((time[:1], time, time[-1:]))
    tops = np.cumsum([curve.slots[name] / scale for name in shown], axis=0)
    # From the top down to the ground, each over the last: no seams between them, and half the points of bands.
    for name, top in reversed(list(zip(shown, tops, strict=True))):
        axes.fill(around, np.concatenate(([0.0], top, [0.0])), color=CLASS_COLOURS[name], linewidth=0, label=name)
    axes.plot(time[[0, -1]], [pool_tokens / scale] * 2, color=INK, linewidth=0.8)
    axes.set_ylim(0, pool_tokens / scale * 1.02)
    axes.tick_params(labelbottom=False)


def means_over(results: Sequence[Result]) -> str:
    """Say over which time the shares in a figure of these results are means, and how it shows where that ends."""
    marked = any(_window_end_s(result) is not None for result in results)
    return f"shares are means over {over(results)}{': up to the dashed line' if marked else ''}"


def draw_window_end(axes: "Axes", result: Result, per_unit_s: float) -> None:
    """Draw a thin dashed line where the measured window ends, unless the run ends there too."""
    end_s = _window_end_s(result)
    if end_s is not None:
        # White below the dashes, so that they are seen on dark classes too.
        axes.axvline(end_s / per_unit_s, color="white", linewidth=1.3)
        axes.axvline(end_s / per_unit_s, color=INK, linewidth=0.8, linestyle=(0, (2, 2)))


def shown_classes(curves: Sequence[MemoryCurve]) -> list[str]:
    """The classes that a figure of these curves shows: those that occur, and always `used` and `free`."""
    return [name for name in CLASSES if name in ("used", "free") or any(c.slots[name].any() for c in curves)]


def legend(figure: "Figure", shown: Sequence[str], top: float) -> None:
    """Name the colours of the classes in one row, whose upper edge is at `top` of the figure."""
    handles = class_handles(shown)
    figure.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(-0.01, top),
        ncols=len(handles),
        handlelength=1.0,
        handleheight=0.9,
        handletextpad=0.4,
        columnspacing=0.9 if len(handles) < len(CLASSES) else 0.5,
        fontsize=8 if len(handles) < len(CLASSES) - 1 else 7,
    )


def class_handles(shown: Sequence[str]) -> list[Any]:
    """What a legend shows for these classes."""
    from matplotlib.patches import Patch

    return [Patch(facecolor=CLASS_COLOURS[name], edgecolor=PALE_INK, linewidth=0.4, label=name) for name in shown]


def _finding(result: Result) -> str:
    metrics, waste = result.metrics, waste_share(result.metrics)
    parts = []
    if metrics["mean_share"]["used"] is not None:
        parts.append(f"{metrics['mean_share']['used']:.0%} of the pool used")
    if waste is not None:
        parts.append(f"{waste:.0%} of what it holds wasted")
    if metrics["preemptions"]:
        parts.append(f"{metrics['preemptions']:,} preemption{'s' if metrics['preemptions'] > 1 else ''}")
    if metrics["rejected"]:
        parts.append(f"{metrics['rejected']:,} rejected")
    return ", ".join(parts)


def _window_end_s(result: Result) -> float | None:
    measured_s = result.metrics.get("window_s")
    return measured_s[1] if measured_s and measured_s[1] < result.metrics["simulated_s"] else None


def _scale(pool_tokens: int) -> tuple[int, str]:
    return (1000, "thousand tokens") if pool_tokens >= THOUSANDS_FROM_TOKENS else (1, "tokens")


def _label_memory(axes: "Axes", pool_tokens: int) -> None:
    scale, unit = _scale(pool_tokens)
    axes.set_ylabel(f"KV memory\n({unit})")
    percent = axes.secondary_yaxis("right", functions=_percent_of(pool_tokens / scale))
    percent.set_ylabel("% of the pool")
    percent.set_yticks([0, 25, 50, 75, 100])
    percent.spines["right"].set_visible(True)


def _percent_of(whole: float) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    return (lambda part: part / whole * 100, lambda percent: percent * whole / 100)


def _marks(result: Result, end_s: float) -> list[Row]:
    """The rows of marks that have any."""
    events = result.tables["events"]
    happened = list(zip(*(events.get(name, ()) for name in ("time_s", "cause", "outcome")), strict=True))
    rows = [("preempted", list(result.tables["preemptions"]["time_s"]), INK)]
    rows += [(label, [time for time, _, outcome in happened if outcome == ended], ALARM) for label, ended in ENDED]
    ends = [outcome for _, outcome in ENDED]
    rows += [
        (label, [time for time, cause, outcome in happened if cause == short and outcome not in ends], PALE_INK)
        for label, short in OUT_OF_MEMORY
    ]
    rows = [(label, [time for time in times_s if time <= end_s], colour) for label, times_s, colour in rows]
    return [row for row in rows if row[1]]


def _draw_marks(axes: "Axes", rows: Sequence[Row], start_s: float, end_s: float, per_unit_s: float) -> None:
    import numpy as np

    edges_s = np.linspace(start_s, end_s, MOST_MARKS + 1)
    for row, (label, times_s, colour) in enumerate(rows):
        # Marks closer than a dot of the figure are one.
        counts, _ = np.histogram(times_s, edges_s)
        at = (edges_s[:-1] + edges_s[1:])[counts > 0] / 2 / per_unit_s
        # One line with gaps: a line a mark would be ten times as many bytes.
        height = np.tile([-row - MARK_SHARE / 2, -row + MARK_SHARE / 2, np.nan], len(at))
        axes.plot(np.repeat(at, 3), height, color=colour, linewidth=0.7, label=label)
        beside: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "va": "center", "fontsize": 7}
        axes.text(-0.015, -row, label, ha="right", **beside)
        axes.text(1.01, -row, f"{len(times_s):,}", ha="left", **beside)
    axes.set_ylim(-max(1, len(rows)) + 0.5, 0.5)
    axes.set_yticks([])
    axes.tick_params(labelbottom=False, length=0)
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)


def _draw_count(axes: "Axes", time: Any, count: Any, colour: str, label: str) -> None:
    """Draw requests running, or waiting, on a scale of their own: one is often a hundred times the other."""
    from matplotlib.ticker import MaxNLocator

    axes.fill_between(time, count, color=colour, alpha=0.18, linewidth=0)
    axes.plot(time, count, color=colour)
    axes.set_ylim(0, max(1.0, float(count.max())) * 1.08)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=3, integer=True))
    axes.set_ylabel(label)
