"""The figure of a comparison whose pools differ: what a larger pool gives in waiting and takes in speed."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kvsim.metrics.result import Result
from kvsim.reporting.figures.frame import LEGEND_LINE, Frame, place_names, short
from kvsim.reporting.finding import three_digits
from kvsim.reporting.style import WIDTH_INCHES, house_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Inches.
PANEL, AXIS, LEFT, GAP = 1.9, 0.42, 0.56, 0.52
P50, P99 = "#0072B2", "#E69F00"
PANELS = (("TPOT (ms)", "tpot_s", 1000.0), ("TTFT (s)", "ttft_s", 1.0))

WIDE = 5.0
"""Latencies whose largest is so many times the smallest are drawn over a logarithmic axis; closer ones would have a
single tick there."""

LARGER = 1.05
"""Pools closer to each other than this ratio differ by rounding to blocks and the like: there is nothing to weigh."""


def has_trade_off(results: Sequence[Result]) -> bool:
    """At least two runs have latencies to compare, and the largest of their pools is `LARGER` than the smallest."""
    pools = [result.metrics["pool_tokens"] for result in _timed(results)]
    return bool(pools) and max(pools) >= LARGER * min(pools)


def trade_off(results: Sequence[Result]) -> "Figure":
    """TPOT and TTFT, p50 and p99, against the tokens that the pool holds: one pair of points for each result.

    Raises ValueError where there is nothing to compare (see `has_trade_off`).
    """
    if not has_trade_off(results):
        raise ValueError("results must hold two with latencies and pools of different sizes")
    timed = _timed(results)
    with house_style():
        frame = Frame(
            results,
            title="A larger pool against the time it costs",
            finding=_finding(timed),
            room_inches=LEGEND_LINE + 0.06 + PANEL + AXIS,
        )
        width = (WIDTH_INCHES - LEFT - GAP - 0.12) / len(PANELS)
        for place, (label, key, scale) in enumerate(PANELS):
            left = LEFT + place * (width + GAP)
            axes = frame.axes(LEGEND_LINE + 0.06, PANEL, left=left, right=WIDTH_INCHES - left - width)
            _draw(axes, timed, key, scale)
            axes.set_ylabel(label)
            axes.set_xlabel("pool (thousand tokens)")
        frame.legend(0, axes.get_legend_handles_labels()[0], columns=2, left=LEFT)
    return frame.figure


def _timed(results: Sequence[Result]) -> list[Result]:
    return [
        result
        for result in results
        if result.metrics["pool_tokens"] and result.metrics["tpot_s"] and result.metrics["ttft_s"]
    ]


def _draw(axes: Any, results: Sequence[Result], key: str, scale: float) -> None:
    from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

    pools = [result.metrics["pool_tokens"] / 1000 for result in results]
    for name, colour, marker in (("p50", P50, "o"), ("p99", P99, "^")):
        values = [scale * result.metrics[key][name] for result in results]
        axes.plot(pools, values, marker, color=colour, markersize=4, linestyle="none", label=name)
    latencies = [scale * result.metrics[key][name] for result in results for name in ("p50", "p99")]
    if 0 < WIDE * min(latencies) < max(latencies):
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        axes.set_ylim(0, 1.15 * max(latencies) or 1)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_major_locator(MaxNLocator(4, steps=(1, 2, 5, 10)))
    axes.margins(x=0.14, y=0.12)
    medians = [scale * result.metrics[key]["p50"] for result in results]
    place_names(axes, [short(result.name, 16) for result in results], list(zip(pools, medians, strict=True)))


def _finding(timed: Sequence[Result]) -> str:
    small, large = (end(timed, key=lambda result: int(result.metrics["pool_tokens"])) for end in (min, max))

    def said(result: Result) -> str:
        ttft, tpot = result.metrics["ttft_s"]["p50"], result.metrics["tpot_s"]["p50"]
        tokens = result.metrics["pool_tokens"] / 1000
        return f"{tokens:,.0f}K tokens: TTFT p50 {three_digits(ttft)} s, TPOT p50 {1000 * tpot:.1f} ms"

    return f"{said(small)}; {said(large)}"
