"""The figure of a diagnosis: what the pool's slots are taken by, and what each cure brings."""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kvsim.reporting.diagnosis.verdict import percent
from kvsim.reporting.style import (
    CLASS_COLOURS,
    INK,
    PALE_INK,
    WIDTH_INCHES,
    footer,
    footer_inches,
    house_style,
    new_figure,
)
from kvsim.study.diagnosis.diagnose import Diagnosis, Numbers

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = {
    "representation": CLASS_COLOURS["used"],
    "reuse": CLASS_COLOURS["cached"],
    "organisation": CLASS_COLOURS["internal"],
    "": PALE_INK,
}
"""The house's palette, one colour a pressure; grey for yardsticks."""
HATCHES = {"representation": "", "reuse": "//", "organisation": ".."}
"""Told apart without colours too."""

# Inches.
HEAD, BAR, BETWEEN, ROW, AXIS = 0.42, 0.3, 0.85, 0.21, 0.42
LEFT, GAP = 1.45, 0.2

TITLE_LETTERS = 60
"""Letters of a title that fit in the width."""

_LEAST_LABELLED = 0.08
"""Shares below this have no room for their number."""
_WIDE = 30
"""Times whose largest is so many times the smallest are drawn on a logarithmic scale."""


def draw_diagnosis(found: Diagnosis) -> "Figure":
    """Draw the pool's slots by pressure (mean over the window), and rate and TTFT p99 before and after each cure."""
    runs = [("as it is", "before", found.before)]
    runs += [(one.cure.name, one.cure.pressure, one.numbers) for one in found.tried if one.numbers is not None]
    with house_style():
        foot = footer_inches([found.result])
        panels = ROW * len(runs)
        height = HEAD + BAR + BETWEEN + panels + AXIS + foot
        figure = new_figure(height)
        figure.text(
            0.012,
            1 - 0.06 / height,
            textwrap.shorten(f"What presses on the KV memory: {found.result.name}", TITLE_LETTERS),
            fontsize=9.5,
            fontweight="bold",
            va="top",
        )
        most = found.dominant or "none: the pool is never full"
        figure.text(0.012, 1 - 0.24 / height, f"dominant: {most}", fontsize=7, va="top", color=PALE_INK)
        _taken(figure, found, height)
        width = (WIDTH_INCHES - LEFT - GAP - 0.14) / 2
        what = "requests (/s)" if found.before.goodput_per_s is None else "goodput (/s)"
        for at, (label, values) in enumerate(
            ((what, [one.rate for _, _, one in runs]), ("TTFT p99 (s)", [one.ttft_p99_s for _, _, one in runs]))
        ):
            left = LEFT + at * (width + GAP)
            axes = figure.add_axes((left / WIDTH_INCHES, (foot + AXIS) / height, width / WIDTH_INCHES, panels / height))
            _panel(axes, runs, values, named=at == 0)
            axes.set_xlabel(label)
        footer(figure, [found.result])
    return figure


def _taken(figure: "Figure", found: Diagnosis, height: float) -> None:
    """One bar: the pool's slots, those taken by pressure, and the rest."""
    pressures, share = found.pressures, found.result.metrics["mean_share"]
    axes = figure.add_axes((0.03, (height - HEAD - BAR) / height, 0.94, BAR / height))
    taken = pressures.taken_share or 0.0
    parts = [
        (name, taken * (getattr(pressures, name) or 0.0), COLOURS[name], HATCHES[name])
        for name in ("representation", "reuse", "organisation")
    ]
    parts.append(("cached or free", (share["cached"] or 0.0) + (share["free"] or 0.0), CLASS_COLOURS["free"], ""))
    left = 0.0
    for name, part, colour, hatch in parts:
        bar = axes.barh([0], [100 * part], left=100 * left, color=colour, hatch=hatch, edgecolor="white", label=name)
        bar[0].set_linewidth(0.5)
        if part >= _LEAST_LABELLED:
            box = {"facecolor": "white", "edgecolor": "none", "pad": 1, "alpha": 0.85}
            axes.text(
                100 * (left + part / 2), 0, percent(part), fontsize=7, ha="center", va="center", color=INK, bbox=box
            )
        left += part
    axes.set_xlim(0, 100)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("slots of the pool (%), mean over the measured window", labelpad=1)
    figure.legend(
        *axes.get_legend_handles_labels(),
        ncols=4,
        fontsize=7,
        loc="upper left",
        bbox_to_anchor=(0.02, (height - HEAD - BAR - 0.42) / height),
        borderaxespad=0,
        columnspacing=1.2,
    )


def _panel(
    axes: "object", runs: Sequence[tuple[str, str, Numbers]], values: Sequence[float | None], *, named: bool
) -> None:
    """A dot for each run, and a line where the run is as it is."""
    from matplotlib.axes import Axes

    assert isinstance(axes, Axes)
    known = [value for value in values if value is not None]
    for row, ((_, pressure, _), value) in enumerate(zip(runs, values, strict=True)):
        if value is None:
            axes.text(
                0.02,
                row,
                "none finished",
                transform=axes.get_yaxis_transform(),
                fontsize=6.5,
                va="center",
                color=PALE_INK,
            )
            continue
        before = pressure == "before"
        axes.plot(
            value,
            row,
            marker="D" if before else "o" if pressure else "x",
            markersize=4.5,
            color=COLOURS.get(pressure, INK),
        )
    if values[0] is not None:
        axes.axvline(values[0], color=PALE_INK, linestyle=":", linewidth=0.8, zorder=0)
    if known and min(known) > 0 and max(known) >= _WIDE * min(known):
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
    else:
        axes.set_xlim(0, 1.08 * max(known, default=0.0) or 1)
    axes.set_ylim(len(runs) - 0.5, -0.5)
    axes.set_yticks(range(len(runs)), [name for name, _, _ in runs] if named else [""] * len(runs))
    axes.tick_params(left=False, labelsize=7.5)
    axes.grid(axis="y", color="#E4E4E4", linewidth=0.6)
    axes.set_axisbelow(True)
