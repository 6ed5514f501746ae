"""Arrivals that follow the time of day."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log1p, sqrt
from typing import TYPE_CHECKING, ClassVar

from kvsim.workload.arguments import check_not_negative, check_positive
from kvsim.workload.arrivals.modulated.interface import Modulated, Piece

if TYPE_CHECKING:
    from numpy.random import Generator

HOURS = 24
DAY_S = 86_400.0


@dataclass(frozen=True, kw_only=True)
class Diurnal(Modulated):
    """A day of 24 rates, over and over: in each hour the mean `rate` x that hour's value over the mean of all.

    `noise` is the coefficient of variation of a lognormal factor of mean 1 that each hour of each day draws anew.
    `day_s` makes days shorter; `start_hour` says at which hour the run begins. ValueError on what is no such day.
    """

    process: ClassVar[str] = "diurnal"
    profile: Sequence[float]
    noise: float = 0.0
    day_s: float = DAY_S
    start_hour: float = 0.0

    def _check(self) -> None:
        if len(self.profile) != HOURS:
            raise ValueError(f"profile: must be {HOURS} values, one an hour; got {len(self.profile)}")
        for value in self.profile:
            check_not_negative("profile", value)
        if not sum(self.profile) > 0:
            raise ValueError("profile: at least one hour must be above 0")
        check_not_negative("noise", self.noise)
        check_positive("day_s", self.day_s)
        check_not_negative("start_hour", self.start_hour)
        if self.start_hour >= HOURS:
            raise ValueError(f"start_hour: must be below {HOURS}; got {self.start_hour!r}")

    def course(self, generator: "Generator") -> Iterator[Piece]:
        """One piece an hour."""
        mean = sum(self.profile) / HOURS
        variance = log1p(self.noise * self.noise)
        hour, done = int(self.start_hour), self.start_hour % 1
        while True:
            factor = float(generator.lognormal(-variance / 2, sqrt(variance))) if variance else 1.0
            rate = self.rate * self.profile[hour] / mean * factor
            yield Piece(self.day_s / HOURS * (1 - done), rate, rate)
            hour, done = (hour + 1) % HOURS, 0.0
