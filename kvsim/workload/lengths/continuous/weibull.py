"""Weibull lengths."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from kvsim.workload.arguments import check_positive
from kvsim.workload.lengths.interface import LengthDistribution
from kvsim.workload.weibull import mean_of_shape

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class Weibull(LengthDistribution):
    """Weibull law: P(X > x) = exp(-(x / scale)**shape); 63 % lie below `scale` tokens.

    Its size is given by exactly one of `mean` (tokens) or `scale` (tokens).
    """

    distribution: ClassVar[str] = "weibull"
    shape: float
    mean: float | None = None
    scale: float | None = None

    def _check(self) -> None:
        check_positive("shape", self.shape)
        if (self.mean is None) == (self.scale is None):
            got = "none" if self.mean is None else "both"
            raise ValueError(f"mean: a weibull law takes exactly one of mean, scale; got {got}")
        check_positive("scale" if self.mean is None else "mean", self.scale if self.mean is None else self.mean)
        try:
            mean_of_shape(self.shape)
        except OverflowError:
            raise ValueError(f"shape: too small to compute with; got {self.shape!r}") from None

    def _raw(self, generator: "Generator", count: int) -> "NDArray[Any]":
        if self.scale is not None:
            scale = self.scale
        else:
            assert self.mean is not None
            scale = self.mean / mean_of_shape(self.shape)
        values: NDArray[Any] = generator.weibull(self.shape, count) * scale
        return values
