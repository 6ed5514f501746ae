"""One figure of one kind of operation: times over a size with fitted curves, below them how far points are off."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kvsim.microbench.fit.fit import FamilyFit
from kvsim.reporting.microbench.specs import MOST_CURVES, POWERS_OF_TWO, Spec, size_of, time_of
from kvsim.reporting.style import ALARM, CLASS_COLOURS, FOOTER_LINE_INCHES, INK, PALE_INK, new_figure
from kvsim.timing.families import Device, family
from kvsim.timing.families.interface import Column

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A4FBF", INK)
GRID_POINTS = 120
LEFT, RIGHT = 0.155, 0.965
TIMES_INCHES, RESIDUALS_INCHES, FACTORS_INCHES = 2.2, 0.85, 0.65
AXIS_INCHES, GAP_INCHES = 0.45, 0.18
"""Below axes with and without labels of their own."""
LEGEND_LINE_INCHES = 0.125
LEGEND_COLUMNS = 2
FEWEST_TICKS, MOST_TICKS = 3, 7

Curve = tuple[str, FamilyFit, list[int]]
"""Its name, its fit and the places of its points among the fit's."""


def figure_of(spec: Spec, fits: Sequence[FamilyFit], device: Device, foot: str, stamp: str | None) -> "Figure":
    """The figure of these fits. `stamp`: said below the title where no GPU took the times. Call in `house_style`."""
    curves, factors = _curves(spec, fits), _factors(spec, fits)
    foot_inches = 0.14 + FOOTER_LINE_INCHES * (foot.count("\n") + 1)
    head_inches = 0.34 + (0.17 if stamp else 0) + LEGEND_LINE_INCHES * -(-(len(curves) + 1) // LEGEND_COLUMNS)
    below = AXIS_INCHES + FACTORS_INCHES if factors else 0
    height = foot_inches + below + AXIS_INCHES + RESIDUALS_INCHES + GAP_INCHES + TIMES_INCHES + head_inches
    figure = new_figure(height)

    def place(bottom: float, tall: float) -> Any:
        return figure.add_axes((LEFT, bottom / height, RIGHT - LEFT, tall / height))

    if factors:
        _show_factors(place(foot_inches + AXIS_INCHES, FACTORS_INCHES), factors)
    bottom = foot_inches + below + AXIS_INCHES
    off, times = place(bottom, RESIDUALS_INCHES), place(bottom + RESIDUALS_INCHES + GAP_INCHES, TIMES_INCHES)
    _times(times, spec, curves, device)
    _residuals(off, spec, fits)
    for axes in (times, off):
        _scale(axes, spec, fits)
    times.tick_params(labelbottom=False)
    figure.text(0.012, 1 - 0.16 / height, spec.title, weight="bold", fontsize=9.5, va="center")
    if stamp is not None:
        figure.text(0.012, 1 - 0.33 / height, stamp, color=ALARM, weight="bold", fontsize=7.5, va="center")
    figure.text(0.012, 0.01, foot, fontsize=7, color=PALE_INK, va="bottom", linespacing=1.25)
    return figure


def _times(axes: Any, spec: Spec, curves: Sequence[Curve], device: Device) -> None:
    low, high = np.inf, 0.0
    for colour, (label, one, rows) in zip(PALETTE, curves, strict=False):
        x = one.series.rows[spec.column][rows]
        measured = one.series.seconds[rows]
        low, high = min(low, float(measured.min())), max(high, float(measured.max()))
        axes.plot(x, measured, "o", color=colour, markersize=3.2, markeredgewidth=0)
        grid, fitted = _fitted(spec, one, rows, device)
        axes.plot(grid, fitted, "-", color=colour, linewidth=1.0, label=label)
    axes.set_yscale("log")
    axes.set_ylim(low / 1.3, high * 1.3)
    axes.minorticks_off()
    axes.set_yticks(*_ticks(low / 1.3, high * 1.3, time_of))
    axes.set_ylabel("time")
    axes.plot([], [], "o", color=PALE_INK, markersize=3.2, label="points: medians; lines: the fit")
    axes.legend(fontsize=7, ncols=LEGEND_COLUMNS, loc="lower left", bbox_to_anchor=(-0.02, 1.0), handlelength=1.4,
                columnspacing=1.0, labelspacing=0.25, borderaxespad=0.1)  # fmt: skip


def _residuals(axes: Any, spec: Spec, fits: Sequence[FamilyFit]) -> None:
    most = 0.0
    for one in fits:
        percent = 100 * (one.predicted / one.series.seconds - 1)
        most = max(most, float(np.max(np.abs(percent))))
        axes.plot(one.series.rows[spec.column], percent, "o", color=CLASS_COLOURS["used"], markersize=2.2,
                  markeredgewidth=0, alpha=0.6)  # fmt: skip
    most = max(1.0, 1.15 * most)
    axes.set_ylim(-most, most)
    axes.axhline(0, color=PALE_INK, linewidth=0.6)
    axes.set_ylabel("fit off, %")
    axes.set_xlabel(spec.axis)


def _scale(axes: Any, spec: Spec, fits: Sequence[FamilyFit]) -> None:
    values = np.concatenate([one.series.rows[spec.column] for one in fits])
    low, high = float(values.min()), float(values.max())
    axes.set_xscale("log")
    axes.set_xlim(low / 1.3, high * 1.3)
    axes.minorticks_off()
    if spec.column in POWERS_OF_TWO:
        powers = np.arange(np.ceil(np.log2(low)), np.log2(high) + 0.01)
        ticks = 2.0 ** powers[:: -(-len(powers) // MOST_TICKS)]
        axes.set_xticks(ticks, [size_of(tick) if spec.column == "bytes" else f"{tick:,.0f}" for tick in ticks])
    else:
        axes.set_xticks(*_ticks(low / 1.3, high * 1.3, time_of if spec.column == "given" else "{:,.0f}".format))


def _ticks(low: float, high: float, text: Callable[[float], str]) -> tuple[list[float], list[str]]:
    """Decades; with few of them, 2 and 5 times these too."""
    decades = [10.0**power for power in range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)]
    found: list[float] = []
    for steps in ((1,), (1, 2, 5)):
        found = [step * one for one in decades for step in steps if low <= step * one <= high]
        if len(found) >= FEWEST_TICKS:
            break
    return found, [text(one) for one in found]


def _curves(spec: Spec, fits: Sequence[FamilyFit]) -> list[Curve]:
    """The curves with the most points, from the fastest to the slowest; each of one fit."""
    found: dict[str, Curve] = {}
    for one in fits:
        rows = one.series.rows
        shown = _most_common(one, spec.same)
        own: dict[str, list[int]] = defaultdict(list)
        for at in np.argsort(rows[spec.column], kind="stable"):
            if shown[at]:
                own[spec.label(one.entry.family, {name: float(values[at]) for name, values in rows.items()})].append(at)
        found |= {label: (label, one, places) for label, places in own.items()}
    kept = sorted(found.values(), key=lambda curve: (-len(curve[2]), curve[0]))[:MOST_CURVES]
    return sorted(kept, key=lambda curve: float(curve[1].series.seconds[curve[2][-1]]))


def _most_common(one: FamilyFit, columns: Sequence[str]) -> "np.typing.NDArray[np.bool_]":
    """The points whose values of these columns are those that most points have; ties go to the last of them."""
    if not columns:
        return np.ones(len(one.series), dtype=bool)
    table = np.stack([one.series.rows[name] for name in columns], axis=1)
    values, count = np.unique(table, axis=0, return_counts=True)
    wanted = values[len(count) - 1 - int(np.argmax(count[::-1]))]
    return np.asarray((table == wanted).all(axis=1))


def _fitted(spec: Spec, one: FamilyFit, rows: Sequence[int], device: Device) -> tuple[Column, Column]:
    """The fit along the size, everything else as at the curve's first point."""
    x = one.series.rows[spec.column][rows]
    grid = np.geomspace(x.min(), x.max(), GRID_POINTS)
    columns = {name: np.full(GRID_POINTS, values[rows[0]]) for name, values in one.series.rows.items()}
    columns[spec.column] = grid
    for follows in _FOLLOW.get(spec.column, ()):
        if follows in columns:
            columns[follows] = grid
    return grid, family(one.entry.family).seconds(one.entry.values, columns, device)


def _factors(spec: Spec, fits: Sequence[FamilyFit]) -> list[tuple[int, float, float]]:
    """(size, factor, standard error) of the parameters that get a panel."""
    if spec.factors is None:
        return []
    entry = fits[0].entry
    return [
        (int(name.split("_")[1]), value, value * entry.relative_errors[name])
        for name, value in entry.values.items()
        if name.startswith(f"{spec.factors}_")
    ]


def _show_factors(axes: Any, factors: Sequence[tuple[int, float, float]]) -> None:
    places = range(len(factors))
    values = [100 * (factor - 1) for _, factor, _ in factors]
    errors = [100 * error for _, _, error in factors]
    axes.errorbar(places, values, yerr=errors, fmt="o", color=CLASS_COLOURS["used"], markersize=3.5, linewidth=0.9,
                  capsize=2)  # fmt: skip
    for at, value in zip(places, values, strict=True):
        axes.annotate(f"{value:+.1f}", (at, value), textcoords="offset points", xytext=(6, 3), fontsize=7)
    axes.axhline(0, color=PALE_INK, linewidth=0.6)
    axes.set_xticks(places, [str(size) for size, _, _ in factors])
    axes.set_xlabel("block size, tokens")
    axes.set_ylabel("longer, %")
    axes.margins(x=0.09, y=0.3)


_FOLLOW = {"context": ("context_max",)}
"""Columns that grow with a size along an even curve."""
