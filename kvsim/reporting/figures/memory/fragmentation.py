"""How broken the free memory is over time: what lies outside the largest hole, and how large that hole is."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kvsim.metrics.result import Result
from kvsim.reporting.figures.frame import LEGEND_LINE, Frame, columns_for, lines_for, look_of, over, short
from kvsim.reporting.figures.memory.levels import Levels, levels
from kvsim.reporting.figures.memory.over_time import THOUSANDS_FROM_TOKENS, draw_window_end, time_unit
from kvsim.reporting.style import ALARM, CLASS_COLOURS, house_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = ("fragmentation", "unusable", "largest_hole", "free", "external")

# Inches.
PANEL, GAP, AXIS = 1.15, 0.14, 0.42


def has_holes(result: Result) -> bool:
    """Its free slots lie in holes, and were recorded over time."""
    return bool(
        result.metrics.get("fragmentation") is not None
        and result.metrics["simulated_s"]
        and "replicas" not in result.tables
    )


def fragmentation(results: Sequence[Result]) -> "Figure":
    """The fragmentation ratio (1 - largest hole / all free slots, in per cent) and the largest hole in tokens.

    One result also shows what is free in all, and what of it the head of the queue cannot use; several have a line
    each. Raises ValueError where none has holes (see `has_holes`).
    """
    shown = [result for result in results if has_holes(result)]
    if not shown:
        raise ValueError("results must hold one whose free slots lie in holes")
    traced = [levels(result, COLUMNS) for result in shown]
    per_unit_s, unit = time_unit(max(float(found.time_s[-1]) for found in traced))
    most = max(result.metrics["pool_tokens"] for result in shown)
    scale, tokens = (1000, "thousand tokens") if most >= THOUSANDS_FROM_TOKENS else (1, "tokens")
    alone = len(shown) == 1
    names = ["outside the largest hole", "of no use to the next request", "free, or lost to shape", "largest hole"]
    names = names if alone else [short(result.name) for result in shown]
    key_inches = LEGEND_LINE * lines_for(names, most=2 if alone else 4) + 0.06
    with house_style():
        frame = Frame(
            shown,
            title=f"{short(shown[0].name)}: holes in the free memory" if alone else "Holes in the free memory",
            finding=_finding(shown),
            note=f"means over {over(shown)}; lines: " + _means(traced),
            room_inches=key_inches + 2 * PANEL + GAP + AXIS,
        )
        ratio = frame.axes(key_inches, PANEL, left=0.75)
        hole = frame.axes(key_inches + PANEL + GAP, PANEL, left=0.75)
        hole.sharex(ratio)
        if alone:
            _one(ratio, hole, traced[0], per_unit_s, scale)
        else:
            _several(ratio, hole, shown, traced, per_unit_s, scale)
        ratio.set_ylim(0, 100)
        ratio.set_ylabel("fragmentation\n(% of free slots)")
        ratio.tick_params(labelbottom=False)
        hole.set_ylim(0, None)
        hole.set_ylabel(f"holes\n({tokens})" if alone else f"largest hole\n({tokens})")
        hole.set_xlim(0, max(float(found.time_s[-1]) for found in traced) / per_unit_s)
        hole.set_xlabel(f"time ({unit})")
        frame.figure.align_ylabels([ratio, hole])
        handles = [handle for axes in (ratio, hole) for handle in axes.get_legend_handles_labels()[0]]
        frame.legend(0, handles[: len(names)], columns_for(names, most=2 if alone else 4), left=0.2)
        if alone:
            for axes in (ratio, hole):
                draw_window_end(axes, shown[0], per_unit_s)
    return frame.figure


def _one(ratio: "Axes", hole: "Axes", found: Levels, per_unit_s: float, scale: int) -> None:
    time, columns = found.time_s / per_unit_s, found.columns
    ratio.plot(time, 100 * columns["fragmentation"], color=CLASS_COLOURS["used"], label="outside the largest hole")
    unusable = 100 * columns["unusable"]
    ratio.plot(time, unusable, color=ALARM, linewidth=0.5, zorder=1, label="of no use to the next request")
    free = (columns["free"] + columns["external"]) / scale
    hole.fill_between(time, free, color=CLASS_COLOURS["free"], label="free, or lost to shape", linewidth=0)
    hole.plot(time, columns["largest_hole"] / scale, color=CLASS_COLOURS["used"], label="largest hole")


def _several(
    ratio: "Axes", hole: "Axes", shown: Sequence[Result], traced: Sequence[Levels], per_unit_s: float, scale: int
) -> None:
    for place, (result, found) in enumerate(zip(shown, traced, strict=True)):
        colour, style = look_of(place)
        look: dict[str, Any] = {"color": colour, "linestyle": style, "linewidth": 1.0}
        time = found.time_s / per_unit_s
        ratio.plot(time, 100 * found.columns["fragmentation"], label=short(result.name), **look)
        hole.plot(time, found.columns["largest_hole"] / scale, **look)


def _means(traced: Sequence[Levels]) -> str:
    longest = max((found.mean_over_s or 0.0 for found in traced), default=0.0)
    return f"means of {longest:.2g} s" if longest else "as recorded"


def _finding(shown: Sequence[Result]) -> str:
    def of(result: Result) -> float:
        return float(result.metrics["fragmentation"])

    worst, best = max(shown, key=of), min(shown, key=of)
    text = f"{of(worst):.0%} of the free slots lie outside the largest hole"
    if best is not worst:
        text += f" under {short(worst.name)}, {of(best):.0%} under {short(best.name)}"
    unusable = worst.metrics.get("unusable_share")
    if len(shown) == 1 and unusable is not None:
        text += f"; while requests wait, {unusable:.0%} of no use to the next"
    return text
