"""Gamma arrivals."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from kvsim.workload.arrivals.interface import check_rate
from kvsim.workload.arrivals.renewal.interface import Renewal, check_cv

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class Gamma(Renewal):
    """Gamma arrivals: independent gaps of mean 1 / `rate` and coefficient of variation `cv` (1 is Poisson).

    The gamma law has shape 1 / cv**2 and scale cv**2 / rate. ValueError on a wrong rate, or a cv that is not
    above 0.
    """

    process: ClassVar[str] = "gamma"
    rate: float
    cv: float

    def __post_init__(self) -> None:
        check_rate(self.rate)
        check_cv(self.cv, self.rate)

    def gaps_s(self, generator: "Generator", count: int) -> "NDArray[Any]":
        """`count` gaps between arrivals, in seconds."""
        variance = self.cv * self.cv
        return generator.gamma(1 / variance, variance / self.rate, count)
