"""Context lengths, and axes over them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LENGTHS = tuple(4096 * 2**power for power in range(9))
"""Context lengths from 4K to 1M tokens."""

FEW = 3000.0
"""Numbers whose largest is less than so many times the smallest have more ticks than a decade each."""


def length_axis(axes: "Axes", lengths: Sequence[int] = LENGTHS) -> None:
    """Lengths of a request to the right."""
    from matplotlib.ticker import NullLocator

    axes.set_xscale("log", base=2)
    axes.set_xticks(lengths, [length_text(length) for length in lengths])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("tokens of a request")


def log_axis(axes: "Axes") -> None:
    """Numbers of any size upwards, written out."""
    from matplotlib.ticker import LogLocator, NullLocator

    axes.set_yscale("log")
    low, high = axes.get_ylim()
    # 1, 2 and 5 where there are few decades.
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < FEW * low else (1,)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter("{x:,g}")


def length_text(tokens: int) -> str:
    """A context length as people write it."""
    if tokens < 2**10:
        return f"{tokens}"
    return f"{tokens // 2**10}K" if tokens < 2**20 else f"{tokens // 2**20}M"
