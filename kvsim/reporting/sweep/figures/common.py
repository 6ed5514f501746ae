"""What the figures of a sweep share: colours, scales, the line above and the provenance below."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kvsim.reporting.finding import sources_of
from kvsim.reporting.style import CLASS_COLOURS, FOOTER_LINE_INCHES, INK, PALE_INK, foot_text, write_foot
from kvsim.reporting.sweep.measures import Measure
from kvsim.reporting.sweep.summary import provenance
from kvsim.study.sweeps.sweep import Sweep

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Inches.
HEAD, AXIS, LEGEND_LINE = 0.2, 0.42, 0.17

LEGEND_COLUMNS = 4

Look = tuple[str, str, float]
"""Colour, marker and its size in points."""

_COLOURS = (*(CLASS_COLOURS[name] for name in ("used", "internal", "cached", "dead", "reserved", "external")), INK)
_MARKERS = "osD^vP*"
_SIZES = (6, 5, 4, 3.5, 3, 3, 3)

LOOKS: tuple[Look, ...] = tuple(zip(_COLOURS, _MARKERS, _SIZES, strict=True))
"""One a group: told apart without colours too, and seen below others where they fall together."""

MOST_KINDS = 2
"""So many sources of one family of numbers are all told below a figure; of more, their number."""

_WIDE = 30
"""Numbers whose largest is so many times the smallest are drawn on a logarithmic scale."""


def wide(numbers: Sequence[float]) -> bool:
    """Whether these are seen on a logarithmic scale alone."""
    return bool(numbers) and min(numbers) > 0 and max(numbers) >= _WIDE * min(numbers)


def scale_of_values(axes: "Axes", measure: Measure, values: Sequence[float]) -> None:
    """Latencies that differ by orders of magnitude are drawn as such; everything else from 0."""
    if measure.better == "low" and wide(values):
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("")
    elif values and min(values) >= 0:
        axes.set_ylim(0, 1.06 * max(values) or 1)


def head_inches(names: Sequence[str]) -> float:
    """Height of the line above a figure and of a legend of so many names."""
    return HEAD + LEGEND_LINE * -(-len(names) // LEGEND_COLUMNS)


def headline(figure: "Figure", sweep: Sweep, how: str) -> None:
    """Say above a figure what ran, and how a point's number comes from its runs."""
    how = "one run a point" if sweep.identity.replications == 1 else how
    failed = f", {len(sweep.failed)} failed" if sweep.failed else ""
    text = f"{sweep.name}: {len(sweep.runs)} runs{failed}; {how}"
    figure.text(0.012, 1 - 0.06 / figure.get_figheight(), text, fontsize=7, va="top", color=PALE_INK)


def legend(figure: "Figure", axes: "Axes") -> None:
    """What the lines and markers of one panel mean, for the whole figure."""
    handles, labels = axes.get_legend_handles_labels()
    top = 1 - (HEAD + 0.02) / figure.get_figheight()
    figure.legend(
        handles,
        labels,
        ncols=LEGEND_COLUMNS,
        fontsize=7,
        loc="upper left",
        bbox_to_anchor=(0.1, top),
        borderaxespad=0,
    )


def foot_inches(sweep: Sweep) -> float:
    """Height of the provenance below a figure, with the space above it."""
    return 0.12 + FOOTER_LINE_INCHES * (_foot(sweep).count("\n") + 1)


def foot(figure: "Figure", sweep: Sweep) -> None:
    """Say below a figure what made it, and where its numbers come from."""
    write_foot(figure, _foot(sweep))


def _foot(sweep: Sweep) -> str:
    seeds = list(dict.fromkeys(run.seed for run in sweep.runs))
    seed = f"seed {seeds[0]}" if len(seeds) == 1 else f"{len(seeds)} seeds, the first {seeds[0]}"
    # Where the pool comes from may be another at every point, and stands in the table.
    told = {family: kinds for family, kinds in provenance(sweep).items() if family != "pool"}
    lines = [
        line
        for family, kinds in told.items()
        if len(kinds) <= MOST_KINDS
        for kind in kinds
        for line in sources_of({family: kind})
    ]
    lines += [f"{family}: {len(kinds)} kinds" for family, kinds in told.items() if len(kinds) > MOST_KINDS]
    return foot_text(" · ".join([f"kvsim {sweep.identity.version}", seed, *lines]))
