"""Steady arrivals with spikes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from kvsim.workload.arguments import check_not_negative, check_positive
from kvsim.workload.arrivals.modulated.interface import Modulated, Piece

if TYPE_CHECKING:
    from numpy.random import Generator


@dataclass(frozen=True, kw_only=True)
class Spikes(Modulated):
    """Every `every_s` seconds, from `first_s` on, the rate is `factor` times the usual for `spike_s` seconds.

    The usual rate is such that a whole period has `rate` arrivals per second on average. ValueError on times that do
    not go together.
    """

    process: ClassVar[str] = "spikes"
    factor: float
    every_s: float
    spike_s: float
    first_s: float | None = None

    def _check(self) -> None:
        check_not_negative("factor", self.factor)
        check_positive("every_s", self.every_s)
        check_positive("spike_s", self.spike_s)
        if self.spike_s >= self.every_s:
            raise ValueError(f"spike_s: must be below every_s = {self.every_s:g}; got {self.spike_s!r}")
        if self.first_s is not None:
            check_not_negative("first_s", self.first_s)

    def course(self, generator: "Generator") -> Iterator[Piece]:
        """The usual rate and the spike's by turns; draws nothing."""
        pause_s = self.every_s - self.spike_s
        usual = self.rate * self.every_s / (pause_s + self.factor * self.spike_s)
        first_s = pause_s if self.first_s is None else self.first_s
        if first_s:
            yield Piece(first_s, usual, usual)
        while True:
            yield Piece(self.spike_s, usual * self.factor, usual * self.factor)
            yield Piece(pause_s, usual, usual)
