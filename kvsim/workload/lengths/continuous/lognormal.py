"""Lognormal lengths."""

from dataclasses import dataclass
from math import isfinite, log
from typing import TYPE_CHECKING, Any, ClassVar

from kvsim.workload.arguments import check_not_negative, check_positive
from kvsim.workload.lengths.interface import LengthDistribution

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class Lognormal(LengthDistribution):
    """Lengths whose natural logarithm is normal with standard deviation `sigma`.

    Its place is given by exactly one of `mean` (tokens), `median` (tokens) or `mu` (mean of the logarithm):
    mu = ln(median) = ln(mean) - sigma**2 / 2.
    """

    distribution: ClassVar[str] = "lognormal"
    sigma: float
    mean: float | None = None
    median: float | None = None
    mu: float | None = None

    def _check(self) -> None:
        check_not_negative("sigma", self.sigma)
        given = [name for name in ("mean", "median", "mu") if getattr(self, name) is not None]
        if len(given) != 1:
            got = "none" if not given else " and ".join(given)
            raise ValueError(f"mean: a lognormal takes exactly one of mean, median, mu; got {got}")
        if self.mu is None:
            check_positive(given[0], getattr(self, given[0]))
        elif isinstance(self.mu, bool) or not isinstance(self.mu, int | float) or not isfinite(self.mu):
            raise ValueError(f"mu: must be a finite number; got {self.mu!r}")
        if not isfinite(self.sigma * self.sigma):
            raise ValueError(f"sigma: too large to compute with; got {self.sigma!r}")

    def _raw(self, generator: "Generator", count: int) -> "NDArray[Any]":
        if self.mean is not None:
            mu = log(self.mean) - self.sigma * self.sigma / 2
        elif self.median is not None:
            mu = log(self.median)
        else:
            assert self.mu is not None
            mu = self.mu
        return generator.lognormal(mu, self.sigma, count)
