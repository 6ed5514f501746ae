"""The figure of a study: each variant's estimate with its interval, metric by metric."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kvsim.metrics.result import Result
from kvsim.reporting.finding import three_digits
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
from kvsim.study.replication.estimates import Estimate
from kvsim.study.replication.study import Study
from kvsim.study.replication.trust import listed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DRAWN = ("waste_share", "ttft_s.p50", "ttft_s.p99", "tpot_s.p99", "e2e_s.mean", "output_tokens_per_s")
"""Metrics that have a panel, where any variant has them."""

COLOURS = {"better": CLASS_COLOURS["cached"], "worse": ALARM}
"""Of a variant by its verdict; the baseline, and what cannot be told from it, are in ink."""

HEAD_POINTS = 7
"""Size of the type above the panels."""

# Heights in inches.
HEAD, LINE, TITLE, ROW, AXIS, GAP = 0.16, 0.12, 0.2, 0.17, 0.2, 0.12

BEYOND = 1.0
"""A number without an interval is drawn as far beyond the intervals as they all reach together; farther away it is
written at the edge, so that intervals are seen."""

MARGIN = 0.08
"""Of an axis, free on either side."""

WIDTHLESS = 0.1
"""What counts as their reach where intervals have next to none, as a share of the largest number."""


def has_intervals(study: Study) -> bool:
    """There is a metric to be drawn: none is where nothing was measured."""
    return bool(_shown(study))


def study_figure(study: Study, results: Sequence[Result]) -> "Figure":
    """Draw a panel for each metric, two side by side: an estimate is a dot, its interval a line through it.

    Green is better than the baseline, red worse, black neither; hollow and grey has no interval. A dashed line goes
    through the baseline. What has no interval and lies far from those that have one is a number with an arrow at the
    edge. Raises ValueError where no metric can be drawn.
    """
    shown = _shown(study)
    if not shown:
        raise ValueError("study holds no metric to draw")
    letters = max(len(_short(variant.name)) for variant in study.variants)
    with house_style():
        panel = len(study.variants) * ROW
        lines = (len(shown) + 1) // 2
        rests = wrapped(f"{_capital(basis(study))}.", HEAD_POINTS)
        text = rests + [line for said in _trust(study) for line in wrapped(said, HEAD_POINTS)]
        head = HEAD + LINE * (len(text) + 1)
        height = head + lines * (TITLE + panel + AXIS + GAP) + footer_inches(results)
        figure = new_figure(height)
        left, gap = 0.02 + 0.0135 * letters, 0.04
        width = (0.985 - left - gap) / 2
        for place, metric in enumerate(shown):
            line, column = divmod(place, 2)
            top = height - head - line * (TITLE + panel + AXIS + GAP) - TITLE
            axes = figure.add_axes((left + column * (width + gap), (top - panel) / height, width, panel / height))
            _draw(axes, study, metric)
            axes.tick_params(labelleft=column == 0)
        for row, said in enumerate(text):
            colour = PALE_INK if row < len(rests) else INK
            figure.text(0.012, 1 - (0.06 + LINE * row) / height, said, fontsize=HEAD_POINTS, va="top", color=colour)
        _key(figure, study, shown, 1 - (0.1 + LINE * len(text)) / height)
        footer(figure, results)
    return figure


def _trust(study: Study) -> list[str]:
    """Whose numbers are not to be read as they stand."""
    full = [variant.name for variant in study.variants if variant.saturated]
    short = [variant.name for variant in study.variants if variant.trusted is False and not variant.saturated]
    said = []
    if full:
        said.append(f"Saturated, so that numbers depend on the length of the run: {listed(full)}.")
    if short:
        said.append(f"Intervals not to be trusted, as the run is too short: {listed(short)}.")
    return said


def _key(figure: "Figure", study: Study, shown: Sequence[Metric], top: float) -> None:
    """What colours and dots mean, of those that are there, in a line."""
    from matplotlib.lines import Line2D

    keys = [metric.key for metric in shown]
    drawn = [
        (variant, variant.estimates[key]) for variant in study.variants for key in keys if key in variant.estimates
    ]
    colours = {_colour(one) for _, one in drawn if _has_interval(one)}
    hollow = {variant.saturated for variant, one in drawn if not _has_interval(one)}
    apart = {one.difference.verdict for _, one in drawn if one.difference is not None}
    neither = "not distinguishable" if apart & {"not distinguishable", "same"} else "not compared"
    named = {COLOURS["better"]: "better", COLOURS["worse"]: "worse", INK: f"baseline, or {neither}"}
    handles = [
        Line2D([], [], color=colour, marker="o", markersize=4, label=label)
        for colour, label in named.items()
        if colour in colours
    ]
    if hollow:
        what = "saturated: no interval" if hollow == {True} else "no interval"
        handles.append(
            Line2D([], [], color=PALE_INK, marker="o", markersize=4, markerfacecolor="white", linestyle="", label=what)
        )
    figure.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(0.012, top),
        ncols=len(handles),
        fontsize=HEAD_POINTS,
        borderpad=0,
        borderaxespad=0,
        handlelength=1.6,
        columnspacing=1.4,
    )


def _shown(study: Study) -> list[Metric]:
    known = {key for variant in study.variants for key in variant.estimates}
    return [metric for metric in METRICS if metric.key in DRAWN and metric.key in known]


def _draw(axes: Any, study: Study, metric: Metric) -> None:
    low, high = _limits(study, metric)
    for place, variant in enumerate(study.variants):
        estimate = variant.estimates.get(metric.key)
        if estimate is None:
            continue
        interval = estimate.interval
        at = interval.estimate * metric.times
        if interval.low is not None and interval.high is not None:
            colour = _colour(estimate)
            axes.plot([interval.low * metric.times, interval.high * metric.times], [place, place], color=colour)
            axes.plot([at], [place], marker="o", markersize=4, color=colour)
        elif low <= at <= high:
            axes.plot([at], [place], marker="o", markersize=4, markerfacecolor="white", color=PALE_INK)
        else:
            _at_the_edge(axes, place, at, above=at > high)
        if variant.name == study.baseline and low <= at <= high:
            axes.axvline(at, color=PALE_INK, linewidth=0.6, linestyle=(0, (4, 3)), zorder=0)
    axes.set_ylim(len(study.variants) - 0.5, -0.5)
    axes.set_yticks(range(len(study.variants)), [_short(variant.name) for variant in study.variants])
    axes.tick_params(left=False, labelsize=7)
    axes.set_xlim(low, high)
    axes.locator_params(axis="x", nbins=4)
    unit = f" ({metric.unit})" if metric.unit else ""
    axes.set_title(f"{metric.label}{unit}", fontsize=8, pad=3)


def _limits(study: Study, metric: Metric) -> tuple[float, float]:
    """Between which values an axis runs: those of all intervals, and of what has none and is not `BEYOND` them."""
    found = _estimates_of(study, metric)
    ends = [end for one in found for end in (one.interval.low, one.interval.high) if _has_interval(one)]
    numbers = [one.interval.estimate for one in found]
    kept = [end for end in ends if end is not None] or numbers
    reach = max(max(kept) - min(kept), WIDTHLESS * max(map(abs, kept)))
    near = [one for one in numbers if min(kept) - BEYOND * reach <= one <= max(kept) + BEYOND * reach]
    low, high = min(kept + near) * metric.times, max(kept + near) * metric.times
    margin = MARGIN * (high - low) or MARGIN * abs(high) or MARGIN
    return low - margin, high + margin


def _at_the_edge(axes: Any, place: int, value: float, *, above: bool) -> None:
    """A number that lies outside the axis, with an arrow to its side."""
    edge, inside, side = (0.98, 0.95, "right") if above else (0.02, 0.05, "left")
    across = axes.get_yaxis_transform()
    axes.plot(
        [edge],
        [place],
        marker=">" if above else "<",
        markersize=4,
        markerfacecolor="white",
        color=PALE_INK,
        transform=across,
    )
    axes.text(
        inside, place, three_digits(value), transform=across, ha=side, va="center_baseline", fontsize=7, color=PALE_INK
    )


def _estimates_of(study: Study, metric: Metric) -> list[Estimate]:
    return [variant.estimates[metric.key] for variant in study.variants if metric.key in variant.estimates]


def _has_interval(estimate: Estimate) -> bool:
    return estimate.interval.low is not None and estimate.interval.high is not None


def _colour(estimate: Estimate) -> str:
    return INK if estimate.difference is None else COLOURS.get(estimate.difference.verdict, INK)


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _short(name: str, letters: int = 18) -> str:
    return name if len(name) <= letters else f"{name[: letters - 1]}…"
