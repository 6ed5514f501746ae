"""The figure of a study: each variant's estimate with its interval, metric by metric."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kvsim.metrics.result import Result
from kvsim.reporting.study.table import METRICS, Metric, basis
from kvsim.reporting.style import (
    ALARM,
    CLASS_COLOURS,
    INK,
    PALE_INK,
    footer,
    footer_inches,
    house_style,
    new_figure,
    wrapped,
)
from kvsim.study.replication.study import Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DRAWN = ("waste_share", "ttft_s.p50", "ttft_s.p99", "tpot_s.p99", "e2e_s.mean", "output_tokens_per_s")
"""Metrics that have a panel, where any variant has them."""

COLOURS = {"better": CLASS_COLOURS["cached"], "worse": ALARM}
"""Of a variant by its verdict; the baseline, and what cannot be told from it, are in ink."""

# Heights in inches.
HEAD, TITLE, ROW, AXIS, GAP = 0.34, 0.2, 0.17, 0.2, 0.12


def has_intervals(study: Study) -> bool:
    """There is a metric to be drawn: none is where nothing was measured."""
    return bool(_shown(study))


def study_figure(study: Study, results: Sequence[Result]) -> "Figure":
    """Draw a panel for each metric, two side by side: an estimate is a dot, its interval a line through it.

    Green is better than the baseline, red worse, black neither; hollow and grey has no interval. A dashed line goes
    through the baseline. Raises ValueError where no metric can be drawn.
    """
    shown = _shown(study)
    if not shown:
        raise ValueError("study holds no metric to draw")
    letters = max(len(_short(variant.name)) for variant in study.variants)
    with house_style():
        panel = len(study.variants) * ROW
        lines = (len(shown) + 1) // 2
        foot = footer_inches(results)
        height = HEAD + lines * (TITLE + panel + AXIS + GAP) + foot
        figure = new_figure(height)
        left, gap = 0.02 + 0.0135 * letters, 0.04
        width = (0.985 - left - gap) / 2
        for place, metric in enumerate(shown):
            line, column = divmod(place, 2)
            top = height - HEAD - line * (TITLE + panel + AXIS + GAP) - TITLE
            axes = figure.add_axes((left + column * (width + gap), (top - panel) / height, width, panel / height))
            _draw(axes, study, metric)
            axes.tick_params(labelleft=column == 0)
        text = "\n".join(wrapped(f"{basis(study)[0].upper()}{basis(study)[1:]}.", 7))
        figure.text(0.012, 1 - 0.07 / height, text, fontsize=7, va="top", color=PALE_INK)
        footer(figure, results)
    return figure


def _shown(study: Study) -> list[Metric]:
    known = {key for variant in study.variants for key in variant.estimates}
    return [metric for metric in METRICS if metric.key in DRAWN and metric.key in known]


def _draw(axes: Any, study: Study, metric: Metric) -> None:
    for place, variant in enumerate(study.variants):
        estimate = variant.estimates.get(metric.key)
        if estimate is None:
            continue
        interval, difference = estimate.interval, estimate.difference
        colour = INK if difference is None else COLOURS.get(difference.verdict, INK)
        at = interval.estimate * metric.times
        if interval.low is None or interval.high is None:
            axes.plot([at], [place], marker="o", markersize=4, markerfacecolor="white", color=PALE_INK)
        else:
            axes.plot([interval.low * metric.times, interval.high * metric.times], [place, place], color=colour)
            axes.plot([at], [place], marker="o", markersize=4, color=colour)
        if variant.name == study.baseline:
            axes.axvline(at, color=PALE_INK, linewidth=0.6, linestyle=(0, (4, 3)), zorder=0)
    axes.set_ylim(len(study.variants) - 0.5, -0.5)
    axes.set_yticks(range(len(study.variants)), [_short(variant.name) for variant in study.variants])
    axes.tick_params(left=False, labelsize=7)
    axes.locator_params(axis="x", nbins=4)
    axes.margins(x=0.08)
    unit = f" ({metric.unit})" if metric.unit else ""
    axes.set_title(f"{metric.label}{unit}", fontsize=8, pad=3)


def _short(name: str, letters: int = 18) -> str:
    return name if len(name) <= letters else f"{name[: letters - 1]}…"
