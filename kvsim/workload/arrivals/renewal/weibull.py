"""Weibull arrivals."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from kvsim.workload.arrivals.interface import check_rate
from kvsim.workload.arrivals.renewal.interface import Renewal, check_cv
from kvsim.workload.weibull import mean_of_shape, shape_of_cv

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class Weibull(Renewal):
    """Weibull arrivals: independent gaps of mean 1 / `rate` and coefficient of variation `cv` (1 is Poisson).

    A cv above 1 means many short gaps and a tail heavier than a gamma law's. ValueError on a wrong rate, or a cv
    outside the range in which the law's shape can be computed.
    """

    process: ClassVar[str] = "weibull"
    rate: float
    cv: float

    def __post_init__(self) -> None:
        check_rate(self.rate)
        check_cv(self.cv, self.rate)
        self._shape  # noqa: B018 (computed here, so that a wrong cv is refused at once)

    @cached_property
    def _shape(self) -> float:
        return shape_of_cv(self.cv)

    def gaps_s(self, generator: "Generator", count: int) -> "NDArray[Any]":
        """`count` gaps between arrivals, in seconds."""
        gaps: NDArray[Any] = generator.weibull(self._shape, count) / (self.rate * mean_of_shape(self._shape))
        return gaps
