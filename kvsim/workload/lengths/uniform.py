"""Lengths in a range."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from kvsim.workload.lengths.interface import LengthDistribution, check_max_given

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class Uniform(LengthDistribution):
    """Every whole number from `min` to `max`, both included, equally often."""

    distribution: ClassVar[str] = "uniform"

    def _check(self) -> None:
        check_max_given(self)

    def _raw(self, generator: "Generator", count: int) -> "NDArray[Any]":
        return generator.integers(self.min, self.max, count, endpoint=True)
