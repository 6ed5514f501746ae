"""The points of a sweep: which values of which dotted keys go together. Written as a grid, a list, or drawn."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from kvsim.errors import InputError
from kvsim.scenario.messages import Origin
from kvsim.scenario.reading.loading import parse_value
from kvsim.workload.streams import Streams

GRID = Origin("--grid")
HYPERCUBE = Origin("--latin-hypercube")

_DIGITS = 6
"""Significant digits of a drawn value: it is written into the results, and is exactly what was run."""

_RANGE = re.compile(r"(?P<low>[^.].*?|\.\d.*?)\.\.(?P<high>.+?)(?P<log>:log)?")
_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(.*)")


@dataclass(frozen=True)
class Point:
    """Changes to a scenario by dotted key, as plain values, and where they were written."""

    changes: Mapping[str, Any]
    origin: Origin


def grid(axes: Mapping[str, Sequence[Any]], origin: Origin = GRID) -> list[Point]:
    """Every combination of the values of every key, the last key changing fastest.

    Raises InputError where there is no key, a key has no value, or one twice.
    """
    if not axes:
        raise InputError(f"{origin.place}: is empty; give a key and its values, such as workload.rate=4/s,8/s")
    for key, values in axes.items():
        if isinstance(values, str) or not isinstance(values, Sequence):
            raise InputError(f"{origin.place}: {key}: {values!r} is no list of values; write [{values!r}]")
        if not values:
            raise InputError(f"{origin.place}: {key}: has no values; give some, such as {key}=A,B,C")
        twice = next((value for at, value in enumerate(values) if value in values[:at]), _NONE)
        if twice is not _NONE:
            raise InputError(f"{origin.place}: {key}: {twice} comes twice; give each value once")
    return [Point(dict(zip(axes, values, strict=True)), origin) for values in product(*axes.values())]


_NONE: Any = object()


def grid_of(texts: Sequence[str]) -> list[Point]:
    """The grid that `KEY=A,B,C` texts say; values are YAML, so that `{name: paged, block_size: 1}` is one."""
    axes: dict[str, list[Any]] = {}
    for text in texts:
        key, equals, values = text.partition("=")
        key = key.strip()
        if not equals or not key:
            raise InputError(f"{GRID.place}: {text!r} is not KEY=A,B,C; write, for example, workload.rate=4/s,8/s")
        if key in axes:
            raise InputError(f"{GRID.place}: {key}: is given twice; write all its values in one")
        try:
            read = parse_value(f"[{values}]")
        except InputError:
            read = None
        if not isinstance(read, list):
            raise InputError(f"{GRID.place}: {text!r}: its values are no YAML; write them as A,B,C")
        axes[key] = read
    return grid(axes)


def listed(points: Sequence[Mapping[str, Any]], name: str = "points") -> list[Point]:
    """Points one by one; `name` stands for their place in messages, with their number from 1."""
    if not points:
        raise InputError(f"{name}: is empty; give at least one point")
    for number, changes in enumerate(points, 1):
        if not changes:
            raise InputError(f"{name}:{number}: changes nothing; give a key and its value, or leave it out")
    return [Point(dict(changes), Origin("list", name, number)) for number, changes in enumerate(points, 1)]


def latin_hypercube(count: int, ranges: Mapping[str, str], seed: int = 0, origin: Origin = HYPERCUBE) -> list[Point]:
    """`count` points that cover every range evenly: each of `count` equal slices of it has one of them.

    A range is `LOW..HIGH`, with `:log` behind it where slices are equal in the logarithm; both ends are numbers of the
    same unit. Values are whole where both ends are, and have six digits. The draws of a key depend on `seed` and the
    key alone. Source: McKay, Beckman, Conover, Technometrics 21 (1979), section 2. Raises InputError for anything else.
    """
    if count < 1:
        raise InputError(f"{origin.place}: {count} points are none; give 1 or more")
    if not ranges:
        raise InputError(f"{origin.place}: no key is given; write, for example, 50 workload.rate=1/s..8/s")
    streams = Streams(seed)
    drawn: dict[str, list[Any]] = {}
    for key, text in ranges.items():
        generator = streams.generator("latin hypercube", key)
        shares = (generator.permutation(count) + generator.random(count)) / count
        drawn[key] = list(_between(f"{origin.place}: {key}", text, shares.tolist()))
    return [Point(dict(zip(drawn, values, strict=True)), origin) for values in zip(*drawn.values(), strict=True)]


def hypercube_of(texts: Sequence[str], seed: int = 0) -> list[Point]:
    """The points that `N KEY=LOW..HIGH[:log] ...` says."""
    first, *rest = texts
    if not first.isdecimal():
        raise InputError(f"{HYPERCUBE.place}: {first!r} is no number of points; write N KEY=LOW..HIGH ...")
    ranges = {}
    for text in rest:
        key, equals, ends = text.partition("=")
        if not equals or key.strip() in ranges:
            problem = "is given twice" if equals else "is not KEY=LOW..HIGH"
            raise InputError(f"{HYPERCUBE.place}: {text!r} {problem}; write, for example, workload.rate=1/s..8/s")
        ranges[key.strip()] = ends
    return latin_hypercube(int(first), ranges, seed)


def _between(place: str, text: str, shares: Sequence[float]) -> Iterator[Any]:
    parts = _RANGE.fullmatch(str(text).strip())
    low, high = (_QUANTITY.fullmatch(parts[end].strip()) if parts else None for end in ("low", "high"))
    if parts is None or low is None or high is None or low[2] != high[2]:
        raise InputError(
            f"{place}: {text!r} is no range; write LOW..HIGH in one unit, such as 1/s..8/s or 100..10000:log"
        )
    least, most, unit = float(low[1]), float(high[1]), low[2]
    logarithmic = parts["log"] is not None
    if not least < most or (logarithmic and least <= 0):
        right = "start above 0" if logarithmic and least <= 0 else "write the smaller end first"
        raise InputError(f"{place}: {text!r} cannot be divided; {right}")
    whole = low[1].lstrip("+-").isdigit() and high[1].lstrip("+-").isdigit() and not unit
    for share in shares:
        value = least * (most / least) ** share if logarithmic else least + (most - least) * share
        number = round(value) if whole else float(f"{value:.{_DIGITS}g}")
        yield f"{number:g}{unit}" if unit and not whole else number
