"""Pareto lengths."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from kvsim.workload.arguments import check_positive
from kvsim.workload.lengths.interface import LengthDistribution

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class Pareto(LengthDistribution):
    """Pareto law: P(X > x) = (`min` / x)**`alpha` from `min` tokens on. At an alpha of 1 or less it has no mean."""

    distribution: ClassVar[str] = "pareto"
    alpha: float

    def _check(self) -> None:
        check_positive("alpha", self.alpha)

    def _raw(self, generator: "Generator", count: int) -> "NDArray[Any]":
        values: NDArray[Any] = self.min * (1 + generator.pareto(self.alpha, count))
        return values
