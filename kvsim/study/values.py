"""Values of swept keys: how they are shown, and the numbers that they stand for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kvsim.units import PS_PER_S, parse_duration, parse_rate, parse_share, parse_size


@dataclass(frozen=True)
class Axis:
    """One swept key: its values as written, in the order of the points, and the numbers that they are.

    `numbers` are None where any value is no number, or they are of several kinds; `unit` is that of the numbers, "" for
    plain ones.
    """

    key: str
    values: Sequence[Any]
    numbers: Sequence[float] | None
    unit: str

    def number(self, value: Any) -> float:
        """The number of one of the values; ValueError where the axis has none."""
        if self.numbers is None:
            raise ValueError(f"{self.key}: its values are no numbers")
        return self._by_value[_identity(value)]

    @cached_property
    def _by_value(self) -> dict[tuple[str, str], float]:
        return dict(zip(map(_identity, self.values), self.numbers or (), strict=True))


def axis(key: str, values: Sequence[Any]) -> Axis:
    """The axis of a key over all points; `values` has one a point, None where the point leaves the key alone."""
    distinct = list({_identity(value): value for value in values}.values())
    read = [quantity(value) for value in distinct]
    units = {one[1] for one in read if one is not None}
    if None in read or len(units) != 1:
        return Axis(key, distinct, None, "")
    return Axis(key, distinct, [one[0] for one in read if one is not None], units.pop())


def _identity(value: Any) -> tuple[str, str]:
    """Values are equal where they are written alike; 1 is not true."""
    return type(value).__name__, shown(value)


def quantity(value: Any) -> tuple[float, str] | None:
    """The number a value stands for and its unit: "", "/s", "s" or "bytes"; None where it is no number."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if not isinstance(value, str):
        # Of a seed, say, beyond 64 bits: no array holds it whole.
        return value if abs(value) < 1 << 63 else float(value), ""
    for parse, scale, unit in (
        (parse_rate, 1, "/s"),
        (parse_duration, PS_PER_S, "s"),
        (parse_size, 1, "bytes"),
        (parse_share, 1, ""),
    ):
        try:
            return parse(value) / scale, unit
        except ValueError:
            continue
    return None


def shown(value: Any) -> str:
    """A value as a scenario writes it, in one line: `4/s`, `{name: paged, block_size: 1}`."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {shown(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(shown, value)) + "]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)
