"""The figure of a trace: how long its prompts and outputs are, and when its requests came."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvsim.metrics.result import to_json, write_whole
from kvsim.reporting.style import CLASS_COLOURS, INK, PALE_INK, foot_text, house_style, new_figure, save_figure
from kvsim.request import PS_PER_S
from kvsim.version import __version__
from kvsim.workload.statistics.inspect import Inspection

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANEL_INCHES = 1.6
TITLE_INCHES = 0.45
"""Above each panel: its title, and what is told of it."""
LABEL_INCHES = 0.42
"""Below each panel: its ticks and its label."""
FOOT_INCHES = 0.3
BINS = 120
"""Bars of the arrivals, at most."""
STEPS_S = (1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400)
"""Lengths of a bar that people read at once."""
MARKED = (50, 95)
"""Percentiles that are written beside the lines."""


def write_trace(found: Inspection, folder: str | Path) -> list[Path]:
    """Write `trace.json` and `trace.png|svg` into `folder`, made if it is not there."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    written = [write_whole(target / "trace.json", to_json(found.record()).encode())]
    return written + save_figure(draw_trace(found), target, "trace")


def write_population(record: dict[str, Any], folder: str | Path) -> list[Path]:
    """Write `trace.json` of a population of clients into `folder`, made if it is not there."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    return [write_whole(target / "trace.json", to_json(record).encode())]


def draw_trace(found: Inspection) -> "Figure":
    """Cumulative shares of lengths; below them requests over time, where the trace tells every call's."""
    timed = found.arrivals is not None and found.arrivals.span_s > 0
    panels = 2 if timed else 1
    each = TITLE_INCHES + PANEL_INCHES + LABEL_INCHES
    height = each * panels + FOOT_INCHES
    with house_style():
        figure = new_figure(height)
        for number, draw in enumerate((_draw_lengths, _draw_arrivals)[:panels], start=1):
            bottom = height - each * number + LABEL_INCHES
            draw(figure.add_axes((0.115, bottom / height, 0.845, PANEL_INCHES / height)), found)
        report = found.report
        text = (
            f"kvsim {__version__} · {report.rows_kept:,} of {report.rows_read:,} rows of {Path(found.trace).name} "
            f"(format {report.format}) · prefix identity {report.prefix_identity}"
        )
        lines = foot_text(text)
        figure.text(0.012, 0.03 / height, lines, fontsize=7, color=PALE_INK, va="bottom", linespacing=1.25)
    return figure


def _draw_lengths(axes: "Axes", found: Inspection) -> None:
    import numpy as np

    for name, sample, spread, colour, style in (
        ("prompt", found.prompts, found.prompt_tokens, CLASS_COLOURS["used"], "-"),
        ("output", found.outputs, found.output_tokens, CLASS_COLOURS["external"], "--"),
    ):
        if spread is None:
            continue
        values, counts = np.unique(np.asarray(sample), return_counts=True)
        share = 100 * np.cumsum(counts) / len(sample)
        label = f"{name}: p50 {spread.p50:,.0f}, p95 {spread.p95:,.0f}"
        axes.step(np.append(values[0], values), np.append(0, share), where="post", color=colour, ls=style, label=label)
        axes.plot([spread.p50, spread.p95], MARKED, ls="", marker="o", markersize=3, color=colour)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_ylim(0, 100)
    axes.set_xlabel("tokens")
    axes.set_ylabel("% of requests, at most")
    axes.set_title("How long prompts and outputs are", pad=16)
    axes.legend(loc="lower left", bbox_to_anchor=(-0.02, 0.97), ncols=2, fontsize=7)


def _draw_arrivals(axes: "Axes", found: Inspection) -> None:
    import numpy as np

    arrivals = found.arrivals
    assert arrivals is not None
    first_ps = min(found.times_ps)
    times_s = np.fromiter(((time - first_ps) / PS_PER_S for time in found.times_ps), float, len(found.times_ps))
    step_s = next((step for step in STEPS_S if arrivals.span_s / step <= BINS), arrivals.span_s / BINS)
    counts, edges = np.histogram(times_s, bins=np.arange(0, arrivals.span_s + step_s, step_s))
    unit, name = (3600.0, "hours") if arrivals.span_s > 3 * 3600 else (60.0, "minutes")
    axes.stairs(counts / step_s, edges / unit, fill=True, color=CLASS_COLOURS["reserved"])
    if arrivals.rate_per_s is not None:
        axes.axhline(arrivals.rate_per_s, color=INK, ls="--", lw=0.7)
    axes.set_xlim(0, edges[-1] / unit)
    axes.set_xlabel(f"{name} since the first request")
    axes.set_ylabel("requests per second")
    axes.set_title("When requests came", pad=16)
    told = f"bars of {step_s:,.3g} s; mean {arrivals.rate_per_s:.3g} /s (dashed), CV of gaps {arrivals.cv:.2f}"
    if arrivals.idc is not None:
        told += f", IDC over {arrivals.bin_s} s {arrivals.idc:.1f}"
    axes.text(0, 1.04, told, fontsize=7, color=PALE_INK, transform=axes.transAxes)
