"""One length for all."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from kvsim.workload.arguments import check_whole
from kvsim.workload.lengths.interface import LONGEST, LengthDistribution

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class Constant(LengthDistribution):
    """Always `value` tokens."""

    distribution: ClassVar[str] = "constant"
    value: int

    def _check(self) -> None:
        check_whole("value", self.value, 1, LONGEST)

    def _raw(self, generator: "Generator", count: int) -> "NDArray[Any]":
        import numpy as np

        return np.full(count, self.value)
