"""Where the KV memory goes under each way of keeping it, as Fig. 2 of the PagedAttention paper shows it."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kvsim.metrics.result import Result
from kvsim.reporting.figures.frame import LEGEND_LINE, Frame, beside, columns_for, lines_for, over, short
from kvsim.reporting.style import CLASS_COLOURS, INK, PALE_INK, house_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PARTS: Mapping[str, str] = {
    "used": "token states",
    "reserved": "reservation",
    "internal": "internal fragmentation",
    "dead": "no longer needed",
    "moving": "being copied",
    "cached": "reusable prefixes",
    "external": "external fragmentation",
    "free": "free",
}
"""The classes of the pool as the paper calls them, where it has a name for them, in the order of its bars. What the
paper calls external fragmentation and others is the last two together."""

REST = "others (published)"
"""Of a published bar: what no printed share accounts for."""

LEAST_NUMBERED = 5.0
"""A part of at least so many per cent has room for its number."""

# Inches.
BAR, THIN, GAP, AXIS = 0.22, 0.15, 0.1, 0.42


def has_waste(results: Sequence[Result]) -> bool:
    """There are several pools to compare, or one beside published shares."""
    shown = _shown(results)
    return len(shown) > 1 or any(_published(result) for result in shown)


def waste(results: Sequence[Result]) -> "Figure":
    """A bar for each result: its pool by class, in per cent, means over the measured window.

    Below it a thin bar where a paper prints these shares. Raises ValueError where there is nothing to compare (see
    `has_waste`).
    """
    if not has_waste(results):
        raise ValueError("results must hold two with pools, or one with published shares")
    shown = _shown(results)
    parts = [name for name in PARTS if any(result.metrics["mean_share"][name] for result in shown)]
    published = [_published(result) for result in shown]
    heights = [BAR + GAP + (THIN if paper else 0) for paper in published]
    names = [PARTS[name] for name in parts] + ([REST] if any(published) else [])
    key_inches = LEGEND_LINE * lines_for(names, most=3) + 0.05
    with house_style():
        frame = Frame(
            results,
            title="Where the KV memory goes",
            finding=_finding(shown, published),
            note=f"shares of the pool, means over {over(shown)}" + ("; thin bars: as published" * any(published)),
            room_inches=key_inches + sum(heights) + AXIS,
        )
        left = beside([short(result.name) for result in shown])
        axes = frame.axes(key_inches, sum(heights), left=max(0.5, left), right=0.2)
        at, ticks = 0.0, []
        for result, paper, height in zip(shown, published, heights, strict=True):
            share = {name: 100 * result.metrics["mean_share"][name] for name in parts}
            ticks.append(at + (GAP + BAR) / 2)
            _bar(axes, ticks[-1], BAR, share)
            if paper:
                known = {name: 100 * paper[name] for name in parts if name in paper}
                _bar(axes, at + GAP / 2 + BAR + THIN / 2, THIN * 0.85, known, rest=True)
            at += height
        axes.set_ylim(at, 0)
        axes.set_yticks(ticks, [short(result.name) for result in shown])
        axes.tick_params(axis="y", length=0)
        axes.set_xlim(0, 100)
        axes.set_xlabel("% of the KV pool")
        frame.legend(0, _handles(parts, rest=any(published)), columns_for(names, most=3))
    return frame.figure


def _shown(results: Sequence[Result]) -> list[Result]:
    return [result for result in results if (result.metrics["mean_share"] or {}).get("used") is not None]


def _published(result: Result) -> Mapping[str, float]:
    printed = result.published.get("mean_share")
    return printed if isinstance(printed, Mapping) else {}


def _bar(axes: "Axes", at: float, height: float, share: Mapping[str, float], *, rest: bool = False) -> None:
    """One lying bar; with `rest`, up to the whole pool hatched."""
    start = 0.0
    for name, percent in share.items():
        axes.barh(at, percent, height, left=start, color=CLASS_COLOURS[name], linewidth=0, label=name)
        if percent >= LEAST_NUMBERED:
            dark = name in ("used", "external", "cached")
            axes.text(
                start + percent / 2, at, f"{percent:.1f}", ha="center", va="center", fontsize=7,
                color="white" if dark else INK,
            )  # fmt: skip
        start += percent
    if rest and start < 100:
        axes.barh(at, 100 - start, height, left=start, color="white", edgecolor=PALE_INK, hatch="////", linewidth=0.4)


def _handles(parts: Sequence[str], *, rest: bool) -> list[Any]:
    from matplotlib.patches import Patch

    made = [
        Patch(facecolor=CLASS_COLOURS[name], edgecolor=PALE_INK, linewidth=0.4, label=PARTS[name]) for name in parts
    ]
    if rest:
        made.append(Patch(facecolor="white", edgecolor=PALE_INK, hatch="////", linewidth=0.4, label=REST))
    return made


def _finding(shown: Sequence[Result], published: Sequence[Mapping[str, float]]) -> str:
    def used(result: Result) -> float:
        return float(result.metrics["mean_share"]["used"])

    least, most = min(shown, key=used), max(shown, key=used)
    if least is most:
        text = f"token states fill {used(most):.1%} of the pool under {short(most.name)}"
    else:
        text = (
            f"token states fill {used(least):.1%} of the pool under {short(least.name)}, "
            f"{used(most):.1%} under {short(most.name)}"
        )
    printed = {id(result): paper.get("used") for result, paper in zip(shown, published, strict=True)}
    told = [f"{paper:.1%}" for one in dict.fromkeys((id(least), id(most))) if (paper := printed[one]) is not None]
    return text + (f" (published: {', '.join(told)})" if told else "")
