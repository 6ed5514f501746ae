"""The figure of a hit curve: what each size finds, what the ideal is, and where most of it is reached."""

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvsim.metrics.result import to_json, write_whole
from kvsim.reporting.style import CLASS_COLOURS, FOOTER_LETTERS, INK, PALE_INK, house_style, new_figure, save_figure
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
MARKERS = "osv^Dx."
"""One a policy, in the order of `COLOURS`: told apart without colours too."""


def write_hit_curve(curve: HitCurve, record: dict[str, Any], folder: str | Path) -> list[Path]:
    """Write `hit_curve.json` and `hit_curve.png|svg` into `folder`, made if it is not there."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    written = [write_whole(target / "hit_curve.json", to_json(record).encode())]
    return written + save_figure(draw_hit_curve(curve), target, "hit_curve")


def draw_hit_curve(curve: HitCurve) -> "Figure":
    """Hit rate against size: LRU as a line, other policies at the sizes that were tried."""
    import numpy as np

    prefixes = curve.prefixes
    with house_style():
        figure = new_figure(3.2)
        axes = figure.add_axes((0.115, 0.255, 0.86, 0.635))
        least, most = min(curve.sizes_blocks), max(prefixes.distinct_blocks, *curve.sizes_blocks)
        for (policy, colour), marker in zip(COLOURS.items(), MARKERS, strict=True):
            shown = [100 * rate.blocks for rate in curve.rates.get(policy, ())]
            if policy == "lru":
                line = np.unique(np.geomspace(least, most, POINTS).astype(int))
                axes.plot(line, [100 * curve.lru.rate(int(size)).blocks for size in line], color=colour, label=policy)
                if shown:
                    axes.plot(curve.sizes_blocks, shown, color=colour, linestyle="", marker=marker, markersize=3)
            elif shown:
                axes.plot(
                    curve.sizes_blocks, shown, color=colour, marker=marker, markersize=3, linewidth=0.8, label=policy
                )
        ideal = 100 * curve.lru.ideal.blocks
        axes.axhline(ideal, color=PALE_INK, linestyle="--", linewidth=0.7)
        axes.text(least, ideal, f"ideal {ideal:.1f} %", fontsize=7, color=PALE_INK, va="bottom")
        knee = curve.lru.smallest(KNEE)
        if knee is not None:
            axes.axvline(knee, color=PALE_INK, linestyle=":", linewidth=0.8)
            axes.text(knee, 0, f" {knee:,} blocks: LRU finds\n {KNEE:.0%} of the ideal", fontsize=7, color=PALE_INK,
                      va="bottom")  # fmt: skip
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.set_ylim(0, max(1.0, 1.12 * ideal))
        axes.set_xlabel(f"blocks of {prefixes.block_tokens:,} tokens in the cache")
        axes.set_ylabel(f"% of {'full' if curve.full_blocks else 'all'} blocks found")
        axes.set_title(f"{Path(prefixes.trace).name}: hit rate over size of the cache")
        axes.legend(loc="center left", fontsize=7)
        text = (
            f"kvsim {__version__} · {len(prefixes.tokens):,} prompts of {prefixes.trace}, in file order, one at a "
            f"time · prefix identity from the trace, in blocks of {prefixes.block_tokens:,} tokens"
        )
        lines = textwrap.fill(text, FOOTER_LETTERS)
        figure.text(0.012, 0.01, lines, fontsize=6.5, color=PALE_INK, va="bottom", linespacing=1.25)
    return figure
