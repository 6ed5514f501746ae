"""Gamma lengths."""

from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any, ClassVar

from kvsim.workload.arguments import check_positive
from kvsim.workload.lengths.interface import LengthDistribution

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class Gamma(LengthDistribution):
    """Gamma law of mean `mean` (tokens) and coefficient of variation `cv`: shape 1 / cv**2, scale mean *
    cv**2.
    """

    distribution: ClassVar[str] = "gamma"
    mean: float
    cv: float

    def _check(self) -> None:
        check_positive("mean", self.mean)
        check_positive("cv", self.cv)
        variance = self.cv * self.cv
        if variance == 0 or not isfinite(1 / variance):
            raise ValueError(f"cv: too small to tell from 0; use the distribution `constant`; got {self.cv!r}")
        if not isfinite(variance * self.mean):
            raise ValueError(f"cv: too large to compute with; got {self.cv!r}")

    def _raw(self, generator: "Generator", count: int) -> "NDArray[Any]":
        variance = self.cv * self.cv
        return generator.gamma(1 / variance, variance * self.mean, count)
