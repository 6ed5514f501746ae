"""The figure of a comparison whose pools differ: what a larger pool gives in waiting and takes in speed."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kvsim.metrics.result import Result
from kvsim.reporting.style import INK, PALE_INK, footer, footer_inches, house_style, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Heights in inches.
HEAD, PANEL, AXIS = 0.5, 1.9, 0.5
P50, P99 = "#0072B2", "#E69F00"
PANELS = (("TPOT (ms)", "tpot_s", 1000.0), ("TTFT (s)", "ttft_s", 1.0))
ROOM = 1.34
"""How far the axis of pools goes, against the largest of them: the last name stands to the right of its point."""


def has_trade_off(results: Sequence[Result]) -> bool:
    """The pools differ, and at least two runs have latencies to compare."""
    return len({result.metrics["pool_tokens"] for result in _timed(results)}) > 1


def trade_off(results: Sequence[Result]) -> "Figure":
    """TPOT and TTFT, p50 and p99, against the tokens that the pool holds: one pair of points for each result.

    Raises ValueError where there is nothing to compare (see `has_trade_off`).
    """
    if not has_trade_off(results):
        raise ValueError("results must hold two with latencies and pools of different sizes")
    timed = _timed(results)
    with house_style():
        foot = footer_inches(results) + AXIS
        height = HEAD + PANEL + foot
        figure = new_figure(height)
        for place, (label, key, scale) in enumerate(PANELS):
            axes = figure.add_axes((0.105 + 0.5 * place, foot / height, 0.385, PANEL / height))
            _draw(axes, timed, key, scale)
            axes.set_ylabel(label)
            axes.set_xlabel("pool (thousand tokens)")
        title = "A larger pool against the time it costs"
        figure.text(0.012, 1 - 0.1 / height, title, weight="bold", fontsize=9.5, va="top", color=INK)
        figure.legend(*axes.get_legend_handles_labels(), loc="upper right", ncols=2, fontsize=7, borderaxespad=0.3)
        footer(figure, results)
    return figure


def _timed(results: Sequence[Result]) -> list[Result]:
    return [
        result
        for result in results
        if result.metrics["pool_tokens"] and result.metrics["tpot_s"] and result.metrics["ttft_s"]
    ]


def _draw(axes: Any, results: Sequence[Result], key: str, scale: float) -> None:
    from matplotlib.ticker import LogLocator, NullLocator

    pools = [result.metrics["pool_tokens"] / 1000 for result in results]
    for name, colour, marker in (("p50", P50, "o"), ("p99", P99, "^")):
        values = [scale * result.metrics[key][name] for result in results]
        axes.plot(pools, values, marker, color=colour, markersize=4, linestyle="none", label=name)
    for place, (pool, result) in enumerate(zip(pools, results, strict=True)):
        at = (pool, scale * result.metrics[key]["p50"])
        # Names of neighbours that lie alike stand on different sides of their points.
        aside, side = ((4, 2), "bottom") if place % 2 else ((4, -2), "top")
        axes.annotate(result.name, at, xytext=aside, textcoords="offset points", fontsize=7, color=PALE_INK, va=side)
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_locator(NullLocator())
    axes.margins(y=0.12)
    low, high = min(pools), max(pools)
    axes.set_xlim(low - 0.06 * (high - low), low + ROOM * (high - low))
