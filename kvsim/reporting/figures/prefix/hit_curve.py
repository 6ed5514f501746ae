"""The figure of a hit curve: what each size finds, what the ideal is, and where most of it is reached."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvsim.metrics.result import to_json, write_whole
from kvsim.reporting.style import (
    CLASS_COLOURS,
    INK,
    PALE_INK,
    foot_text,
    house_style,
    new_figure,
    save_figure,
    write_foot,
)
from kvsim.study.hits.curve import HitCurve
from kvsim.version import __version__

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KNEE = 0.9
"""Share of the ideal that is marked."""
POINTS = 400
"""Sizes at which the line of LRU is drawn."""
COLOURS: Mapping[str, str] = {
    "lru": CLASS_COLOURS["used"],
    "lru-head-first": CLASS_COLOURS["reserved"],
    "lfu": CLASS_COLOURS["internal"],
    "fifo": CLASS_COLOURS["dead"],
    "length-aware": CLASS_COLOURS["external"],
    "s3-fifo": CLASS_COLOURS["cached"],
    "optimal": INK,
}
"""The house's palette, one colour a policy."""
MARKERS = " sv^Dx."
"""One a policy, in the order of `COLOURS`: told apart without colours too."""
LRU_ON_TOP = 3
FARTHEST = 2.0
"""Sizes that are at most so many times apart are joined; where they are farther apart, straight lines would say what
nobody measured."""


def write_hit_curve(curve: HitCurve, record: dict[str, Any], folder: str | Path) -> list[Path]:
    """Write `hit_curve.json` and `hit_curve.png|svg` into `folder`, made if it is not there."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    written = [write_whole(target / "hit_curve.json", to_json(record).encode())]
    return written + save_figure(draw_hit_curve(curve), target, "hit_curve")


def draw_hit_curve(curve: HitCurve) -> "Figure":
    """Hit rate against size: LRU as a line, other policies at the sizes that were tried, joined where close."""
    import numpy as np

    prefixes = curve.prefixes
    with house_style():
        figure = new_figure(3.55)
        axes = figure.add_axes((0.115, 0.245, 0.86, 0.53))
        dense = _dense(curve.sizes_blocks)
        least, most = min(curve.sizes_blocks), max(prefixes.distinct_blocks, *curve.sizes_blocks)
        for (policy, colour), marker in zip(COLOURS.items(), MARKERS, strict=True):
            shown = [100 * rate.blocks for rate in curve.rates.get(policy, ())]
            if policy == "lru":
                line = np.unique(np.geomspace(least, most, POINTS).astype(int))
                every = [100 * curve.lru.rate(int(size)).blocks for size in line]
                axes.plot(line, every, color=colour, label=policy, zorder=LRU_ON_TOP)
            elif shown:
                joined = {"linewidth": 0.8, "markersize": 3} if dense else {"linestyle": "none", "markersize": 4.5}
                axes.plot(curve.sizes_blocks, shown, color=colour, marker=marker, label=policy, **joined)
        ideal = 100 * curve.lru.ideal.blocks
        axes.axhline(ideal, color=PALE_INK, linestyle="--", linewidth=0.7)
        axes.text(least, ideal, f"ideal {ideal:.1f} %", fontsize=7, color=PALE_INK, va="bottom")
        knee = curve.lru.smallest(KNEE)
        if knee is not None:
            axes.axvline(knee, color=PALE_INK, linestyle=":", linewidth=0.8)
            # Beside the line, where there is room.
            right = knee**2 > least * most
            said = f" {knee:,} blocks: LRU finds \n {100 * KNEE:.0f} % of the ideal "
            axes.text(knee, 0, said, fontsize=7, color=PALE_INK, va="bottom", ha="right" if right else "left")
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.set_ylim(0, max(1.0, 1.12 * ideal))
        axes.set_xlabel(f"blocks of {prefixes.block_tokens:,} tokens in the cache")
        axes.set_ylabel(f"% of {'full' if curve.full_blocks else 'all'} blocks found")
        figure.text(0.012, 0.98, "Hit rate over the size of a prefix cache", fontsize=9.5, weight="bold", va="top")
        figure.text(0.012, 0.93, _finding(curve, knee), fontsize=8, va="top")
        axes.legend(loc="lower left", bbox_to_anchor=(-0.1, 0.98), ncols=4, fontsize=7)
        text = (
            f"kvsim {__version__} · {len(prefixes.tokens):,} prompts of {Path(prefixes.trace).name}, in file order, "
            f"one at a time · prefix identity from the trace, in blocks of {prefixes.block_tokens:,} tokens · counted, "
            "not timed: no error of step times to expect"
        )
        lines = foot_text(text)
        write_foot(figure, lines)
    return figure


def _dense(sizes: Sequence[int]) -> bool:
    return len(sizes) > 1 and all(large <= FARTHEST * small for small, large in pairwise(sizes))


def _finding(curve: HitCurve, knee: int | None) -> str:
    ideal = curve.lru.ideal.blocks
    if knee is None:
        return f"at most {ideal:.1%} of the blocks can be found"
    tokens = knee * curve.prefixes.block_tokens
    return f"LRU finds {KNEE:.0%} of the ideal {ideal:.1%} with {tokens:,} tokens in the cache"
