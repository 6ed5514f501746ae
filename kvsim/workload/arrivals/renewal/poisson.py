"""Poisson arrivals."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from kvsim.workload.arrivals.interface import check_rate
from kvsim.workload.arrivals.renewal.interface import Renewal

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class Poisson(Renewal):
    """Poisson arrivals: independent exponential gaps of mean 1 / `rate`. ValueError on a wrong rate."""

    process: ClassVar[str] = "poisson"
    rate: float

    def __post_init__(self) -> None:
        check_rate(self.rate)

    def gaps_s(self, generator: "Generator", count: int) -> "NDArray[Any]":
        """`count` gaps between arrivals, in seconds."""
        return generator.exponential(1 / self.rate, count)
