"""A quantity with the interval it may lie in: what printed digits mean, or how far starts differ."""

from collections.abc import Callable
from dataclasses import dataclass

from kvsim.units import GIB


@dataclass(frozen=True, slots=True)
class Span:
    """`best` and the interval from `low` to `high` around it, in bytes (or any one unit)."""

    low: float
    best: float
    high: float

    @classmethod
    def exactly(cls, value: float) -> "Span":
        """A value that is known to the last digit."""
        return cls(value, value, value)

    @classmethod
    def within(cls, value: float, spread: float) -> "Span":
        """`value` give or take `spread`, not below 0 on the low side."""
        return cls(max(min(0.0, value), value - spread), value, value + spread)

    @classmethod
    def printed_gib(cls, text: str, factor: int = 1, *, decimals: int = 0) -> "Span":
        """Bytes that a number of GiB may mean, `factor` times over: 1.84 is anything from 1.835 to 1.845.

        `decimals` that were printed at least, where zeros at the end may have been dropped.
        """
        half = 0.5 * 10 ** -max(decimals, len(text.partition(".")[2]))
        value = float(text)
        return cls(*(factor * GIB * gib for gib in (value - half, value, value + half)))

    def __add__(self, other: "Span") -> "Span":
        return Span(self.low + other.low, self.best + other.best, self.high + other.high)

    def __sub__(self, other: "Span") -> "Span":
        return Span(self.low - other.high, self.best - other.best, self.high - other.low)

    def times(self, factor: float) -> "Span":
        """The span scaled by a factor that is not negative."""
        return Span(self.low * factor, self.best * factor, self.high * factor)

    def each(self, function: Callable[[float], float]) -> "Span":
        """The span after a function that never falls, such as rounding down."""
        return Span(function(self.low), function(self.best), function(self.high))

    @property
    def gib(self) -> float:
        """The best value in GiB, rounded to a thousandth."""
        return round(self.best / GIB, 3)
