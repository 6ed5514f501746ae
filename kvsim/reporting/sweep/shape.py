"""Which figure the points of a sweep ask for."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from kvsim.reporting.sweep.points import At
from kvsim.study.values import Axis, shown

MOST_LINES = 7
"""Lines that one panel can hold apart: as many as the house has colours."""

MOST_MAPS = 4
"""Heat maps of one measure in a figure."""


@dataclass(frozen=True)
class Shape:
    """The kind of figure, the axes of numbers that it is drawn over, and its points by group, in their order.

    `line`: one axis of numbers, a line a group. `heat`: two of them in all combinations, a map a group. `pareto`: the
    rest, a colour a group. A group is a variant together with what is changed that is no axis of the figure.
    """

    kind: Literal["line", "heat", "pareto"]
    axes: tuple[Axis, ...]
    groups: dict[str, list[At]]


def shape(points: Sequence[At], axes: Sequence[Axis]) -> Shape:
    """Choose by the points themselves, whether they came from a grid, a list or a draw."""
    lengths = [one for one in axes if one.numbers is not None and len(one.numbers) > 1]
    keys = {one.key for one in lengths}
    groups: dict[str, list[At]] = {}
    for at in points:
        groups.setdefault(_group(at, axes, keys), []).append(at)
    if len(lengths) == 1 and len(groups) <= MOST_LINES:
        return Shape("line", (lengths[0],), groups)
    if len(lengths) == 2 and len(groups) <= MOST_MAPS:
        cells = len(lengths[0].values) * len(lengths[1].values)
        if all(len(group) == cells for group in groups.values()):
            return Shape("heat", (lengths[0], lengths[1]), groups)
    by_variant: dict[str, list[At]] = {}
    for at in points:
        by_variant.setdefault(at.variant or "", []).append(at)
    return Shape("pareto", (), groups if len(groups) <= MOST_LINES and not keys else by_variant)


def _group(at: At, axes: Sequence[Axis], drawn: set[str]) -> str:
    several = [one.key for one in axes if one.key not in drawn and len(one.values) > 1]
    named = [shown(at.changes[key]) for key in several if key in at.changes]
    return " ".join(([at.variant] if at.variant else []) + named)
