"""Zipf's law, truncated."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from kvsim.workload.arguments import check_not_negative
from kvsim.workload.lengths.interface import LengthDistribution, check_max_given

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray


_ZIPF_VALUES = 1 << 24
"""The table of a Zipf law holds 8 bytes per length in its range; this many (128 MiB) is past every context
window.
"""


@dataclass(frozen=True, kw_only=True)
class Zipf(LengthDistribution):
    """Truncated Zipf law: P(k) proportional to k**-`theta` for the whole numbers k from `min` to `max`.

    `theta` 0 is uniform. The first draw computes a table of 8 bytes per length in the range.
    """

    distribution: ClassVar[str] = "zipf"
    theta: float

    def _check(self) -> None:
        check_not_negative("theta", self.theta)
        check_max_given(self)
        if self.max - self.min >= _ZIPF_VALUES:
            raise ValueError(f"max: a Zipf law takes at most {_ZIPF_VALUES} lengths; got {self.min} to {self.max}")

    @cached_property
    def _cumulative(self) -> "NDArray[Any]":
        import numpy as np

        # Relative to `min`, so that a steep law does not underflow to zero everywhere.
        weights = (np.arange(self.min, self.max + 1) / self.min) ** -float(self.theta)
        cumulative: NDArray[Any] = np.cumsum(weights)
        cumulative /= cumulative[-1]
        return cumulative

    def _raw(self, generator: "Generator", count: int) -> "NDArray[Any]":
        import numpy as np

        return self.min + np.searchsorted(self._cumulative, generator.random(count), side="right")
