"""The figure of the prefixes that prompts share: how long each is, and how many requests begin with it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kvsim.metrics.result import Result
from kvsim.reporting.figures.frame import LEGEND_LINE, Frame, short
from kvsim.reporting.figures.prefix.tree import Node, joined, tree_of, walk
from kvsim.reporting.style import INK, PALE_INK, house_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHADES = ((1, "#DADADA", "1 request"), (2, "#BFDDF0", "2 to 9"), (10, "#6BB1DA", "10 to 99"), (100, "#0072B2", "100+"))
"""Requests from which on a node has a colour, and what the legend says: the more, the darker."""

COLUMNS, ROWS = 900, 420
"""Points of the drawing."""

TOLD_COLUMNS, TOLD_ROWS = 110, 22
"""Points that a node must have for its size to be written into it."""

MOST_TOLD = 12

# Inches.
PANEL, AXIS = 2.5, 0.42


def has_prompts(results: Sequence[Result]) -> bool:
    """There is one run, whose prompts were recorded."""
    return len(results) == 1 and "prompts" in results[0].tables and bool(results[0].metrics["arrived"])


def prefix_tree(result: Result) -> "Figure":
    """Prompts from the top down in tokens, requests side by side: what some share is one stretch above all of them.

    So widths are requests and heights are tokens: of the tokens that are asked for, a cache that forgets nothing
    computes each stretch once. Large nodes say their size and how many requests begin with it. Raises ValueError where
    prompts were not recorded.
    """
    if not has_prompts([result]):
        raise ValueError("result has no prompts to draw")
    root = joined(tree_of(result.tables["prompts"]))
    nodes = list(walk(root))
    deepest = max(above + node.tokens for node, _, above in nodes)
    with house_style():
        frame = Frame(
            [result],
            title=f"{short(result.name)}: what prompts share",
            finding=_finding(result, nodes),
            note="widths are requests, heights tokens, from the start down; numbers: tokens × requests that share them",
            room_inches=LEGEND_LINE + 0.06 + PANEL + AXIS,
        )
        axes = frame.axes(LEGEND_LINE + 0.06, PANEL, left=0.74)
        axes.imshow(
            _points(nodes, root.requests, deepest), aspect="auto", interpolation="nearest",
            extent=(0, root.requests, deepest, 0),
        )  # fmt: skip
        _tell(axes, nodes, root.requests, deepest)
        axes.set_xlabel("requests that begin alike, side by side")
        axes.set_ylabel("tokens from the start")
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.yaxis.set_major_formatter("{x:,.0f}")
        frame.legend(0, _handles(), columns=len(SHADES), left=0.74)
    return frame.figure


def _points(nodes: Sequence[tuple[Node, int, int]], requests: int, deepest: int) -> Any:
    """Colours of points: at each the colour of the node there, its left edge and its head drawn white."""
    import numpy as np
    from matplotlib.colors import to_rgb

    points = np.ones((ROWS, COLUMNS, 3))
    palette = [(least, np.array(to_rgb(colour))) for least, colour, _ in SHADES]
    for node, left, above in nodes:
        first, after = (round(edge / requests * COLUMNS) for edge in (left, left + node.requests))
        top, bottom = (round(edge / deepest * ROWS) for edge in (above, above + node.tokens))
        if after > first and bottom > top:
            colour = next(shade for least, shade in reversed(palette) if node.requests >= least)
            points[top:bottom, first:after] = colour
            if after - first > 2 and bottom - top > 2:
                points[top, first:after] = points[top:bottom, first] = 1.0
    return points


def _tell(axes: "Axes", nodes: Sequence[tuple[Node, int, int]], requests: int, deepest: int) -> None:
    large = [
        (node, left, above)
        for node, left, above in nodes
        if node.requests / requests * COLUMNS >= TOLD_COLUMNS and node.tokens / deepest * ROWS >= TOLD_ROWS
    ]
    for node, left, above in sorted(large, key=lambda one: -one[0].tokens * one[0].requests)[:MOST_TOLD]:
        at = left + node.requests / 2, above + node.tokens / 2
        text = f"{node.tokens:,} × {node.requests:,}"
        axes.text(*at, text, ha="center", va="center", fontsize=7, color="white" if node.requests >= 100 else INK)


def _handles() -> list[Any]:
    from matplotlib.patches import Patch

    return [Patch(facecolor=colour, edgecolor=PALE_INK, linewidth=0.4, label=label) for _, colour, label in SHADES]


def _finding(result: Result, nodes: Sequence[tuple[Node, int, int]]) -> str:
    asked = sum(node.tokens * node.requests for node, _, _ in nodes)
    once = sum(node.tokens for node, _, _ in nodes)
    text = f"{asked:,} prompt tokens are {once:,} when what prompts share is kept once ({1 - once / asked:.0%} less)"
    rate = result.metrics["hit_rate"]
    if rate is None:
        return text
    # What was answered before is found as well, and is in no prompt the first time.
    answers = ", answers among it" if rate > 1 - once / asked else ""
    return f"{text}; found cached: {rate:.0%}{answers}"
