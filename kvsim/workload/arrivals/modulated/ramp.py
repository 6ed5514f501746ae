"""Arrivals that ramp up (or down) to their rate."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from kvsim.workload.arguments import check_not_negative, check_positive
from kvsim.workload.arrivals.modulated.interface import Modulated, Piece

if TYPE_CHECKING:
    from numpy.random import Generator

_HELD_S = 3600.0
"""The steady part comes in pieces of this length."""


@dataclass(frozen=True, kw_only=True)
class Ramp(Modulated):
    """From `start` x `rate` to `rate` in a straight line over `ramp_s` seconds, and steady from then on.

    ValueError on a start below 0 or a time that is not above it.
    """

    process: ClassVar[str] = "ramp"
    ramp_s: float
    start: float = 0.0

    def _check(self) -> None:
        check_positive("ramp_s", self.ramp_s)
        check_not_negative("start", self.start)

    def course(self, generator: "Generator") -> Iterator[Piece]:
        """The ramp, then the steady rate without end; draws nothing."""
        yield Piece(self.ramp_s, self.start * self.rate, self.rate)
        while True:
            yield Piece(_HELD_S, self.rate, self.rate)
