"""Exponential lengths."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from kvsim.workload.arguments import check_positive
from kvsim.workload.lengths.interface import LengthDistribution

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class Exponential(LengthDistribution):
    """Exponential law of mean `mean` (tokens)."""

    distribution: ClassVar[str] = "exponential"
    mean: float

    def _check(self) -> None:
        check_positive("mean", self.mean)

    def _raw(self, generator: "Generator", count: int) -> "NDArray[Any]":
        return generator.exponential(self.mean, count)
