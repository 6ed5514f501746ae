"""How long requests wait and take: which share of them stays below each TTFT, TPOT and E2E."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kvsim.metrics.result import Result
from kvsim.metrics.tables import slices
from kvsim.reporting.figures.frame import LEGEND_LINE, Frame, columns_for, lines_for, look_of, over, short
from kvsim.reporting.finding import three_digits
from kvsim.reporting.style import PALE_INK, WIDTH_INCHES, house_style
from kvsim.units import parse_seconds

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    Values = NDArray[np.float64]

LATENCIES: Mapping[str, tuple[str, str, float]] = {
    "ttft_s": ("TTFT", "s", 1.0),
    "tpot_s": ("TPOT", "ms", 1000.0),
    "e2e_s": ("E2E", "s", 1.0),
}
"""Column to what people call it, its unit there, and how many of these a second is."""

STEPS = 200
"""Points of a curve, evenly over the requests; and `STEPS // 10` more over the last hundredth of them."""

WIDE = 30.0
"""Latencies whose 99th percentile is so many times the 1st are drawn over a logarithmic axis."""

# Inches.
PANEL, TITLE, AXIS, LEFT, GAP = 1.35, 0.06, 0.42, 0.5, 0.16


def has_latencies(results: Sequence[Result]) -> bool:
    """Some request of some result got a token in the measured window, and was recorded."""
    return any(_recorded(result) for result in results)


def latencies(results: Sequence[Result]) -> "Figure":
    """Three panels: the share of requests, in per cent, whose TTFT, TPOT and E2E are at most so long; a line a result.

    They are of the requests behind the metrics of the same name: those that arrive in the measured window and got so
    far. Dots mark the median and the 99th percentile, dashes the goals. Raises ValueError where nobody got a token.
    """
    shown = [result for result in results if _recorded(result)]
    if not shown:
        raise ValueError("results must hold one whose requests got tokens")
    names = [short(result.name) for result in shown]
    key_inches = LEGEND_LINE * lines_for(names) + 0.06 if len(shown) > 1 else 0.0
    goals = _goals(shown)
    with house_style():
        frame = Frame(
            shown,
            title="How long requests wait and take" if len(shown) > 1 else f"{names[0]}: how long requests take",
            finding=_finding(shown),
            note=f"requests that arrive in {over(shown)}; dots: p50 and p99" + ("; dashes: goals" if goals else ""),
            room_inches=key_inches + TITLE + PANEL + AXIS,
        )
        sample = [latencies_of(result) for result in shown]
        width = (WIDTH_INCHES - LEFT - 0.12 - 2 * GAP) / len(LATENCIES)
        for place, (name, (label, unit, scale)) in enumerate(LATENCIES.items()):
            left = LEFT + place * (width + GAP)
            axes = frame.axes(key_inches + TITLE, PANEL, left=left, right=WIDTH_INCHES - left - width)
            _draw(axes, [scale * one[name] for one in sample], names)
            goal = goals.get(name)
            if goal is not None:
                axes.axvline(scale * goal, color=PALE_INK, linewidth=0.9, linestyle=(0, (4, 2)), label="goal")
            axes.set_xlabel(f"{label} ({unit})")
            axes.set_ylim(0, 101)
            axes.set_yticks([0, 25, 50, 75, 100])
            axes.tick_params(labelleft=not place, labelsize=7)
            if not place:
                axes.set_ylabel("% of requests, at most")
                handles = axes.get_legend_handles_labels()[0][: len(shown)]
        if key_inches:
            frame.legend(0, handles, columns_for(names), left=LEFT)
    return frame.figure


def latencies_of(result: Result) -> "dict[str, Values]":
    """The latencies of the requests behind the metrics of these names, in seconds, sorted.

    Metrics of a saturated window count those that arrived while requests waited, which the tables do not tell: these
    are then those that arrived from the first such moment to the last.
    """
    import numpy as np

    opened_s, closed_s = result.metrics["window_s"]
    found: dict[str, list[Values]] = {name: [] for name in LATENCIES}
    for rows in slices(result.tables["requests"], ("arrival_s", "end", *LATENCIES)):
        arrival_s = np.asarray(rows["arrival_s"], dtype=float)
        inside = (arrival_s >= opened_s) & (arrival_s <= closed_s)
        finished = inside & (np.asarray(rows["end"], dtype=object) == "finished")
        for name in LATENCIES:
            values = np.asarray(rows[name], dtype=float)
            found[name].append(values[(inside if name == "ttft_s" else finished) & np.isfinite(values)])
    return {name: np.sort(np.concatenate(pieces)) for name, pieces in found.items()}


def _recorded(result: Result) -> bool:
    return bool(result.metrics["ttft_s"] and "requests" in result.tables)


def _draw(axes: "Axes", sample: "Sequence[Values]", names: Sequence[str]) -> None:
    import numpy as np
    from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

    share = np.concatenate((np.linspace(0, 0.99, STEPS), np.linspace(0.99, 1, STEPS // 10)[1:]))
    for place, (values, name) in enumerate(zip(sample, names, strict=True)):
        if not len(values):
            continue
        colour, style = look_of(place)
        axes.plot(np.quantile(values, share), 100 * share, color=colour, linestyle=style, label=name, linewidth=1.1)
        marked = np.quantile(values, [0.5, 0.99])
        axes.plot(marked, [50, 99], marker="o", markersize=2.6, linestyle="none", color=colour)
    every = np.concatenate(sample) if sample else np.empty(0)
    positive = every[every > 0]
    if len(positive) and np.quantile(positive, 0.99) > WIDE * np.quantile(positive, 0.01):
        axes.set_xscale("log")
        axes.set_xlim(np.quantile(positive, 0.002), positive.max() * 1.15)
        axes.xaxis.set_major_locator(LogLocator(numticks=5))
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        axes.set_xlim(0, None)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=4))
    axes.xaxis.set_major_formatter("{x:,g}")


def _goals(results: Sequence[Result]) -> dict[str, float]:
    """The goals in seconds that hold for all of them."""
    found = {}
    for name in LATENCIES:
        key = f"slo.{name.removesuffix('_s')}"
        told = {result.scenario_resolved.get(key, {}).get("value") for result in results}
        goal = told.pop() if len(told) == 1 else None
        if goal is not None:
            found[name] = parse_seconds(goal)
    return found


def _finding(results: Sequence[Result]) -> str:
    ranked = sorted(results, key=lambda result: float(result.metrics["ttft_s"]["p50"]))
    best, worst = ranked[0], ranked[-1]

    def said(result: Result) -> str:
        spread = result.metrics["ttft_s"]
        return f"{three_digits(spread['p50'])} s (p99 {three_digits(spread['p99'])} s)"

    if best is worst:
        return f"median TTFT {said(best)}"
    return f"median TTFT {said(best)} under {short(best.name)}, {said(worst)} under {short(worst.name)}"
