"""What tokens cost against how long people wait for them: which variants no other beats in both."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kvsim.metrics.result import Result
from kvsim.reporting.figures.frame import Frame, place_names, short
from kvsim.reporting.finding import three_digits
from kvsim.reporting.front import front
from kvsim.reporting.style import CLASS_COLOURS, PALE_INK, WIDTH_INCHES, house_style, provenance_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANELS = (("TTFT p99 (s)", "ttft_s", 1.0), ("TPOT p99 (ms)", "tpot_s", 1000.0))

WIDE = 30.0
"""Latencies whose largest is so many times the smallest are drawn over a logarithmic axis."""

# Inches.
PANEL, AXIS, LEFT, GAP = 1.8, 0.42, 0.58, 0.62


def has_costs(results: Sequence[Result]) -> bool:
    """Two results or more have a price, output and latencies, and do not all cost the same."""
    return len({_usd(result) for result in _priced(results)}) > 1


def costs(results: Sequence[Result]) -> "Figure":
    """US dollars per million output tokens to the right, the 99th percentiles of TTFT and TPOT upwards.

    The line joins those that no other beats in both; they are filled. Raises ValueError where there is nothing to
    weigh (see `has_costs`).
    """
    if not has_costs(results):
        raise ValueError("results must hold two with a price, latencies and different costs")
    shown = _priced(results)
    with house_style():
        frame = Frame(
            results,
            title="What tokens cost against how long people wait",
            finding=_finding(shown),
            note="at the output of the measured window; filled and joined: no other is better in both",
            room_inches=PANEL + AXIS,
            foot=provenance_line(results, price=True),
        )
        width = (WIDTH_INCHES - LEFT - GAP - 0.12) / len(PANELS)
        for place, (label, key, scale) in enumerate(PANELS):
            left = LEFT + place * (width + GAP)
            axes = frame.axes(0.04, PANEL - 0.04, left=left, right=WIDTH_INCHES - left - width)
            _draw(axes, shown, [scale * float(result.metrics[key]["p99"]) for result in shown])
            axes.set_ylabel(label)
            axes.set_xlabel("USD per million output tokens", fontsize=7.5)
    return frame.figure


def _usd(result: Result) -> float | None:
    cost = result.metrics.get("cost") or {}
    value = cost.get("usd_per_million_output_tokens")
    return None if value is None else float(value)


def _priced(results: Sequence[Result]) -> list[Result]:
    timed = [result for result in results if result.metrics["ttft_s"] and result.metrics["tpot_s"]]
    return [result for result in timed if _usd(result) is not None]


def _draw(axes: "Axes", shown: Sequence[Result], latencies: Sequence[float]) -> None:
    from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

    points = [(_usd(result) or 0.0, latency) for result, latency in zip(shown, latencies, strict=True)]
    best = sorted(front(points), key=points.__getitem__)
    axes.plot(
        [points[at][0] for at in best], [points[at][1] for at in best], color=PALE_INK, linewidth=0.8, zorder=1,
        drawstyle="steps-post",
    )  # fmt: skip
    for at, (x, y) in enumerate(points):
        filled = CLASS_COLOURS["used"] if at in best else "white"
        axes.plot(x, y, "o", color=CLASS_COLOURS["used"], markerfacecolor=filled, markersize=4.5, zorder=2)
    if min(latencies) > 0 and max(latencies) > WIDE * min(latencies):
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        axes.set_ylim(0, 1.15 * max(latencies) or 1)
    axes.yaxis.set_major_formatter("{x:,g}")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=4))
    axes.margins(x=0.14, y=0.12)
    place_names(axes, [short(result.name, 16) for result in shown], points)


def _finding(shown: Sequence[Result]) -> str:
    cheap = min(shown, key=lambda result: (_usd(result), result.metrics["ttft_s"]["p99"]))
    quick = min(shown, key=lambda result: (result.metrics["ttft_s"]["p99"], _usd(result)))

    def said(result: Result) -> str:
        return (
            f"{short(result.name)} at {three_digits(_usd(result))} USD, TTFT p99 "
            f"{three_digits(result.metrics['ttft_s']['p99'])} s"
        )

    if cheap is quick:
        return f"cheapest and quickest: {said(cheap)}"
    return f"cheapest: {said(cheap)}; quickest: {said(quick)}"
