"""What a paper prints of these runs, beside what was simulated: a bar each."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kvsim.metrics.result import Result
from kvsim.reporting.figures.frame import LEGEND_LINE, Frame, beside, short
from kvsim.reporting.finding import three_digits
from kvsim.reporting.style import CLASS_COLOURS, PALE_INK, house_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LABELS: Mapping[str, str] = {
    "mean_running": "requests at once, mean",
    "saved_share": "slots saved by sharing, %",
    "hit_rate": "hit rate, %",
}
"""What the axis of a metric says; another metric has its own name."""

SIMULATED, PRINTED = "simulated", "published"


# Inches.
BAR, THIN, GAP, AXIS = 0.2, 0.13, 0.1, 0.45


def has_published(results: Sequence[Result]) -> bool:
    """A paper prints a number of some of them that is no share of the pool by class, which `waste` shows."""
    return bool(_printed(results))


def published(results: Sequence[Result]) -> "Figure":
    """For every such metric a panel, with a bar a result and a thin one below it for what is printed.

    Raises ValueError where nothing is (see `has_published`).
    """
    metrics = _printed(results)
    if not metrics:
        raise ValueError("results must hold one with a published number")
    shown = [result for result in results if any(metric in result.published for metric in metrics)]
    height = len(shown) * (BAR + THIN + GAP)
    panel = height + AXIS
    key_inches = LEGEND_LINE + 0.08
    with house_style():
        frame = Frame(
            results,
            title="Published beside simulated",
            finding=_finding(shown, metrics[0]),
            note="thin bars: as published",
            room_inches=key_inches + len(metrics) * panel,
        )
        left = max(0.5, beside([short(result.name) for result in shown]))
        for number, metric in enumerate(metrics):
            axes = frame.axes(key_inches + number * panel, height, left=left, right=0.35)
            _panel(axes, shown, metric)
        frame.legend(0, _handles(), 2)
    return frame.figure


def _panel(axes: "Axes", shown: Sequence[Result], metric: str) -> None:
    scale = 100.0 if metric.endswith(("_share", "_rate")) else 1.0
    most = 0.0
    for place, result in enumerate(shown):
        at = place * (BAR + THIN + GAP)
        for value, top, thick, colour in (
            (result.metrics.get(metric), at + GAP / 2, BAR, CLASS_COLOURS["used"]),
            (result.published.get(metric), at + GAP / 2 + BAR, THIN * 0.85, PALE_INK),
        ):
            if value is None:
                continue
            axes.barh(top + thick / 2, scale * value, thick, color=colour, linewidth=0)
            axes.annotate(
                three_digits(scale * value), (scale * value, top + thick / 2), (3, 0),
                textcoords="offset points", va="center", fontsize=7,
            )  # fmt: skip
            most = max(most, scale * value)
    axes.set_ylim(len(shown) * (BAR + THIN + GAP), 0)
    axes.set_yticks(
        [place * (BAR + THIN + GAP) + (GAP + BAR) / 2 for place in range(len(shown))],
        [short(result.name) for result in shown],
    )
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(0, 1.08 * most or 1)
    axes.set_xlabel(LABELS.get(metric, metric))


def _printed(results: Sequence[Result]) -> list[str]:
    """The metrics that a paper prints one number of, in the order in which scenarios name them."""
    names = dict.fromkeys(name for result in results for name in result.published)
    return [name for name in names if any(isinstance(result.published.get(name), int | float) for result in results)]


def _handles() -> list[Any]:
    from matplotlib.patches import Patch

    return [
        Patch(facecolor=CLASS_COLOURS["used"], linewidth=0, label=SIMULATED),
        Patch(facecolor=PALE_INK, linewidth=0, label=PRINTED),
    ]


def _finding(shown: Sequence[Result], metric: str) -> str:
    """The largest distance of a simulated number from the printed one."""
    apart = {
        result.name: result.metrics[metric] / result.published[metric] - 1
        for result in shown
        if result.published.get(metric) and result.metrics.get(metric) is not None
    }
    if not apart:
        return ""
    name = max(apart, key=lambda one: abs(apart[one]))
    return f"{LABELS.get(metric, metric).partition(',')[0]}: {apart[name]:+.1%} at most ({short(name)})"
