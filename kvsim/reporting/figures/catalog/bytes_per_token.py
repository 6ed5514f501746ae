"""What one token of KV takes in each model of the catalogue, by its kind of attention."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from kvsim.catalog.footprint import Footprint
from kvsim.catalog.models import models
from kvsim.metrics.result import Result
from kvsim.reporting.figures.catalog.served import served
from kvsim.reporting.figures.frame import Frame, short
from kvsim.reporting.finding import three_digits
from kvsim.reporting.style import ALARM, CLASS_COLOURS, PALE_INK, house_style
from kvsim.units import SIZE_UNITS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KIB = SIZE_UNITS["KiB"]

FAMILIES: Mapping[str, tuple[str, ...]] = {
    "MHA": ("mha",),
    "GQA": ("gqa", "gqa+cla", "cross"),
    "MQA": ("mqa",),
    "windows": ("swa", "hybrid-swa", "hybrid-swa+kv-share", "hybrid-chunked"),
    "linear": ("hybrid-linear", "hybrid-mamba"),
    "MLA": ("mla", "mla+index", "hybrid-linear-mla"),
}
"""Rows of the figure, and the kinds of attention in the catalogue that they hold: every query head with a KV head of
its own, several with one, all with one, layers that see a window alone, layers with a state in place of KV, a latent
vector."""

# Inches.
ROW, AXIS, LINE = 0.4, 0.42, 0.18


@dataclass(frozen=True)
class Taken:
    """A model's KV bytes a token: while all windows have room (near), and once they are full (far)."""

    name: str
    near: int
    far: int


def bytes_per_token(results: Sequence[Result]) -> "Figure":
    """A dot for each model: KiB of KV a token, in bf16, over all layers; a row for each kind of attention.

    Where layers see a window alone, a line goes down to a hollow dot: what a token takes once the windows are full.
    The model of the run is marked. Raises ValueError where its model is not known.
    """
    own = _own(results)
    if not own:
        raise ValueError("results must hold one whose model is known")
    rows = {family: _taken(kinds) for family, kinds in FAMILIES.items()}
    with house_style():
        frame = Frame(
            results,
            title="KV of one token, by kind of attention",
            finding=_finding(own, rows),
            note="whole models in bf16, named: least and most of each kind; hollow: once the windows are full",
            room_inches=LINE + len(rows) * ROW + AXIS,
        )
        axes = frame.axes(LINE, len(rows) * ROW, left=0.72, right=0.62)
        axes.set_xscale("log")
        axes.set_xlim(3, 9000)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        for place, found in enumerate(rows.values()):
            _row(axes, place, found)
        for name, taken in own.items():
            axes.axvline(taken / KIB, color=ALARM, linewidth=0.9, zorder=1)
            label = f"{short(name, 28)}: {three_digits(taken / KIB)} KiB"
            axes.annotate(label, (taken / KIB, 1), xycoords=axes.get_xaxis_transform(), xytext=(0, 2),
                          textcoords="offset points", ha="center", fontsize=7, color=ALARM)  # fmt: skip
        axes.set_yticks(range(len(rows)), list(rows))
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel("KV of one token (KiB)")
        axes.xaxis.set_major_formatter("{x:,g}")
        beside: dict[str, Any] = {
            "transform": axes.get_yaxis_transform(),
            "fontsize": 7,
            "color": PALE_INK,
            "ha": "left",
        }
        for place, found in enumerate(rows.values()):
            middle = three_digits(median(one.near for one in found) / KIB)
            axes.text(1.015, place, f"median\n{middle} KiB", va="center", linespacing=1.1, **beside)
    return frame.figure


def has_model(results: Sequence[Result]) -> bool:
    """The model of some result is known."""
    return bool(_own(results))


def _own(results: Sequence[Result]) -> dict[str, int]:
    """Bytes a token in bf16, over all ranks, of the models of the runs."""
    found = (served(result) for result in results)
    return {one.name: Footprint(one).kv_bytes_per_token for one in found if one is not None}


def _taken(kinds: Sequence[str]) -> list[Taken]:
    every = [one for one in models() if one.attention in kinds]
    found = [Taken(one.name, Footprint(one).kv_bytes_per_token, Footprint(one).kv_bytes_per_token_far) for one in every]
    return sorted(found, key=lambda one: (one.near, one.name))


def _row(axes: "Axes", place: int, found: Sequence[Taken]) -> None:
    colour = CLASS_COLOURS["used"]
    # Side by side where several take the same.
    heights = [place + 0.09 * (number % 3 - 1) for number in range(len(found))]
    for one, height in zip(found, heights, strict=True):
        if 0 < one.far < one.near:
            axes.plot([one.far / KIB, one.near / KIB], [height] * 2, color=colour, linewidth=0.4, zorder=2)
            axes.plot(one.far / KIB, height, "o", color=colour, markersize=2.6, markerfacecolor="white",
                      markeredgewidth=0.6, zorder=3)  # fmt: skip
    axes.plot([one.near / KIB for one in found], heights, "o", color=colour, markersize=3.2, alpha=0.75,
              markeredgewidth=0, zorder=3)  # fmt: skip
    least, most = found[0], found[-1]
    axes.text(least.near / KIB, place + 0.2, short(least.name, 26), fontsize=7, ha="left", va="top")
    axes.text(most.near / KIB, place - 0.2, short(most.name, 26), fontsize=7, ha="right", va="bottom")


def _finding(own: Mapping[str, int], rows: Mapping[str, Sequence[Taken]]) -> str:
    name, taken = next(iter(own.items()))
    full, latent = (median(one.near for one in rows[family]) for family in ("MHA", "MLA"))
    return (
        f"{short(name, 28)} takes {taken / KIB:,.0f} KiB a token; in the median MHA {full / KIB:,.0f}, "
        f"MLA {latent / KIB:,.0f}"
    )
