"""Evenly spaced arrivals."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from kvsim.request import PS_PER_S
from kvsim.workload.arrivals.interface import CHUNK, Described, as_written, check_rate

if TYPE_CHECKING:
    from numpy.random import Generator


@dataclass(frozen=True, kw_only=True)
class Constant(Described):
    """Evenly spaced arrivals: the k-th at k / `rate` seconds, rounded once. ValueError on a wrong rate."""

    process: ClassVar[str] = "constant"
    rate: float

    def __post_init__(self) -> None:
        check_rate(self.rate)

    def arrivals_ps(self, generator: "Generator", chunk: int = CHUNK) -> Iterator[int]:
        """Arrival times in picoseconds from the start, never decreasing, without end; draws nothing."""
        gap_ps = PS_PER_S / as_written(self.rate)
        numerator, denominator = gap_ps.numerator, gap_ps.denominator
        total = denominator // 2
        while True:
            total += numerator
            yield total // denominator
