"""Arrivals that are on and off by turns."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from kvsim.workload.arguments import check_positive
from kvsim.workload.arrivals.modulated.interface import Modulated, Piece
from kvsim.workload.arrivals.modulated.mmpp import Mmpp

if TYPE_CHECKING:
    from numpy.random import Generator


@dataclass(frozen=True, kw_only=True)
class OnOff(Modulated):
    """Bursts of exponential duration of mean `on_s`, with nothing for a mean of `off_s` between them.

    In a burst arrivals come at `rate` x (on_s + off_s) / on_s per second. ValueError on a time that is not above 0.
    """

    process: ClassVar[str] = "on-off"
    on_s: float
    off_s: float

    def _check(self) -> None:
        check_positive("on_s", self.on_s)
        check_positive("off_s", self.off_s)

    def course(self, generator: "Generator") -> Iterator[Piece]:
        """One piece for each burst and for each pause."""
        states = Mmpp(rate=self.rate, rates=(1.0, 0.0), sojourns_s=(self.on_s, self.off_s), scale="count")
        return states.course(generator)
