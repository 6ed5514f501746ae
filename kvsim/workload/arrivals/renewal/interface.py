"""What renewal processes share: gaps that know nothing of one another."""

from collections.abc import Iterator
from math import isfinite
from typing import TYPE_CHECKING, Any

from kvsim.request import PS_PER_S
from kvsim.workload.arguments import check_positive
from kvsim.workload.arrivals.interface import CHUNK, LAST_PS, Described

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray


class Renewal(Described):
    """Independent gaps of one law.

    Gaps are rounded to picoseconds one by one and added as integers: a long run loses no precision.
    """

    def gaps_s(self, generator: "Generator", count: int) -> "NDArray[Any]":
        """`count` gaps between arrivals, in seconds."""
        raise NotImplementedError

    def arrivals_ps(self, generator: "Generator", chunk: int = CHUNK) -> Iterator[int]:
        """Arrival times in picoseconds from the start, never decreasing, without end."""
        now_ps = 0
        while True:
            for gap_ps in (self.gaps_s(generator, chunk) * PS_PER_S).tolist():
                now_ps += round(gap_ps)
                yield now_ps


def check_cv(cv: float, rate: float) -> None:
    """A coefficient of variation that a law of gaps can have on this clock; ValueError otherwise."""
    check_positive("cv", cv)
    variance = cv * cv
    if variance == 0 or not isfinite(1 / variance):
        raise ValueError(f"cv: too small to tell from 0; use the process `constant`; got {cv!r}")
    if variance / rate * PS_PER_S > LAST_PS:
        raise ValueError(f"cv: gaps this uneven do not fit a clock of 64-bit picoseconds; got {cv!r}")
