"""The figure of a comparison: KV use, running and waiting over time, and the distributions of the latencies."""

from typing import TYPE_CHECKING, Any

import numpy as np

from kvsim.reporting.finding import sources_of
from kvsim.reporting.style import (
    CLASS_COLOURS,
    FOOTER_LINE_INCHES,
    INK,
    foot_text,
    house_style,
    new_figure,
    write_foot,
)
from kvsim.study.recorded.compare import NAMES, Comparison
from kvsim.study.recorded.measured import LATENCIES, Measured
from kvsim.study.recorded.session import Compared

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEASURED, SIMULATED = INK, CLASS_COLOURS["external"]
WIDE_INCHES, SMALL_INCHES, HEAD_INCHES = 0.95, 1.35, 0.42
GAP_INCHES, LABEL_INCHES = 0.28, 0.4
AXES = {"kv_share": "KV use, %", "running": "running", "waiting": "waiting"}
PERCENT = 100.0


def draw_recorded(found: Compared) -> "Figure":
    """Panels of what both sides tell, above one another; the latencies at the foot."""
    comparison = found.comparison
    gauges = [name for name in AXES if _told(comparison.measured, name)]
    latencies = [name for name in LATENCIES if _has(comparison, name)]
    footer = _footer(found)
    foot = 0.12 + FOOTER_LINE_INCHES * (footer.count("\n") + 1)
    height = HEAD_INCHES + len(gauges) * (WIDE_INCHES + GAP_INCHES) + LABEL_INCHES + foot
    if latencies:
        height += SMALL_INCHES + (LABEL_INCHES - GAP_INCHES if gauges else 0.0)
    with house_style():
        figure = new_figure(height)
        top = height - HEAD_INCHES
        for place, name in enumerate(gauges):
            bottom = top - WIDE_INCHES
            axes = figure.add_axes((0.115, bottom / height, 0.86, WIDE_INCHES / height))
            _gauge(axes, comparison, name, last=place == len(gauges) - 1)
            if not place:
                _legend(axes)
            top = bottom - GAP_INCHES
        width = 0.86 / max(1, len(latencies))
        for place, name in enumerate(latencies):
            box = (0.115 + place * width, (foot + LABEL_INCHES) / height, width - 0.05, SMALL_INCHES / height)
            axes = figure.add_axes(box)
            _distribution(axes, comparison, name, first=not place)
            if place == len(latencies) - 1 and not gauges:
                _legend(axes)
        title = f"{found.result.name}: measured and simulated"
        figure.text(0.012, 1 - 0.17 / height, title, weight="bold", fontsize=9.5)
        write_foot(figure, footer)
    return figure


def _footer(found: Compared) -> str:
    """What made the figure, and what both sides rest on."""
    said = [f"kvsim {found.result.version}", f"measured: {found.comparison.measured.source}"]
    rests_on = {name: where for name, where in found.result.provenance.items() if name in ("timing", "pool")}
    said += sources_of(rests_on, found.result.expected_error)
    return foot_text(" · ".join(said))


def _told(side: Measured, name: str) -> bool:
    return side.series is not None and side.series.get(name) is not None


def _has(comparison: Comparison, name: str) -> bool:
    both = (comparison.measured.requests, comparison.simulated.requests)
    return all(side is not None and not np.isnan(side.latency(name)).all() for side in both)


def _gauge(axes: Any, comparison: Comparison, name: str, *, last: bool) -> None:
    scale = PERCENT if name == "kv_share" else 1.0
    for side, colour, width in ((comparison.measured, MEASURED, 1.3), (comparison.simulated, SIMULATED, 0.9)):
        if side.series is not None and (values := side.series.get(name)) is not None:
            axes.plot(side.series.time_s, scale * values, color=colour, linewidth=width)
    axes.set_ylim(0, None)
    axes.set_xlim(0, None)
    axes.set_ylabel(AXES[name], fontsize=7.5)
    axes.tick_params(labelsize=7)
    if last:
        axes.set_xlabel("seconds", fontsize=7.5, labelpad=1)


def _distribution(axes: Any, comparison: Comparison, name: str, *, first: bool) -> None:
    for side, colour, width in ((comparison.measured, MEASURED, 1.3), (comparison.simulated, SIMULATED, 0.9)):
        assert side.requests is not None
        values = side.requests.latency(name)
        values = np.sort(values[~np.isnan(values)])
        scale = 1e3 if name == "tpot_s" else 1.0
        axes.plot(scale * values, np.arange(1, len(values) + 1) / len(values) * PERCENT, color=colour, linewidth=width)
    axes.set_ylim(0, PERCENT)
    axes.set_xlim(0, None)
    axes.set_xlabel(f"{NAMES[name]}, {'ms' if name == 'tpot_s' else 's'}", fontsize=7.5, labelpad=1)
    axes.tick_params(labelsize=7)
    if first:
        axes.set_ylabel("% of requests", fontsize=7.5)
    else:
        axes.set_yticklabels([])


def _legend(axes: Any) -> None:
    axes.plot([], [], color=MEASURED, label="measured")
    axes.plot([], [], color=SIMULATED, label="simulated")
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 0.98), ncols=2, fontsize=7, handlelength=1.4)
