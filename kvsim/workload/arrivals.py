"""When requests arrive: processes that give one arrival after the other, for as long as one asks.

The first request arrives one gap after the start, so that n arrivals take n mean gaps.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from kvsim.request import PS_PER_S
from kvsim.workload.arguments import check_positive

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

CHUNK = 1024
"""Values drawn at a time: enough to make numpy's cost per call vanish. No result depends on it."""

LAST_PS = (1 << 63) - 1
"""The tables of a result hold times as 64-bit picoseconds."""


class ArrivalProcess(Protocol):
    """Makes the arrivals of open traffic; holds its parameters and no state.

    `rate` is in requests per second. A process draws from the generator it is handed and nothing else.
    """

    process: ClassVar[str]

    @property
    def rate(self) -> float:
        """Mean arrivals per second."""

    def arrivals_ps(self, generator: "Generator", chunk: int = CHUNK) -> Iterator[int]:
        """Arrival times in picoseconds from the start, never decreasing, without end."""

    def describe(self) -> dict[str, object]:
        """The process and its parameters, as a scenario would give them."""


class _Named:
    process: ClassVar[str]

    def describe(self) -> dict[str, object]:
        """The process and its parameters, as a scenario would give them."""
        return {"process": self.process, **vars(self)}


class _Renewal(_Named):
    """Independent gaps: what Poisson and gamma arrivals share.

    Gaps are rounded to picoseconds one by one and added as integers: a long run loses no precision.
    """

    def gaps_s(self, generator: "Generator", count: int) -> "NDArray[Any]":
        raise NotImplementedError

    def arrivals_ps(self, generator: "Generator", chunk: int = CHUNK) -> Iterator[int]:
        """Arrival times in picoseconds from the start, never decreasing, without end."""
        now_ps = 0
        while True:
            for gap_ps in (self.gaps_s(generator, chunk) * PS_PER_S).tolist():
                now_ps += round(gap_ps)
                yield now_ps


@dataclass(frozen=True, kw_only=True)
class Poisson(_Renewal):
    """Poisson arrivals: independent exponential gaps of mean 1 / `rate`. ValueError on a wrong rate."""

    process: ClassVar[str] = "poisson"
    rate: float

    def __post_init__(self) -> None:
        _check_rate(self.rate)

    def gaps_s(self, generator: "Generator", count: int) -> "NDArray[Any]":
        """`count` gaps between arrivals, in seconds."""
        return generator.exponential(1 / self.rate, count)


@dataclass(frozen=True, kw_only=True)
class Gamma(_Renewal):
    """Gamma arrivals: independent gaps of mean 1 / `rate` and coefficient of variation `cv` (1 is Poisson).

    The gamma law has shape 1 / cv**2 and scale cv**2 / rate. ValueError on a wrong rate, or a cv that is not
    above 0.
    """

    process: ClassVar[str] = "gamma"
    rate: float
    cv: float

    def __post_init__(self) -> None:
        _check_rate(self.rate)
        check_positive("cv", self.cv)
        variance = self.cv * self.cv
        if variance == 0 or not isfinite(1 / variance):
            raise ValueError(f"cv: too small to tell from 0; use the process `constant`; got {self.cv!r}")
        if variance / self.rate * PS_PER_S > LAST_PS:
            raise ValueError(f"cv: gaps this uneven do not fit a clock of 64-bit picoseconds; got {self.cv!r}")

    def gaps_s(self, generator: "Generator", count: int) -> "NDArray[Any]":
        """`count` gaps between arrivals, in seconds."""
        variance = self.cv * self.cv
        return generator.gamma(1 / variance, variance / self.rate, count)


@dataclass(frozen=True, kw_only=True)
class Constant(_Named):
    """Evenly spaced arrivals: the k-th at k / `rate` seconds, rounded once. ValueError on a wrong rate."""

    process: ClassVar[str] = "constant"
    rate: float

    def __post_init__(self) -> None:
        _check_rate(self.rate)

    def arrivals_ps(self, generator: "Generator", chunk: int = CHUNK) -> Iterator[int]:
        """Arrival times in picoseconds from the start, never decreasing, without end; draws nothing."""
        gap_ps = PS_PER_S / as_written(self.rate)
        numerator, denominator = gap_ps.numerator, gap_ps.denominator
        total = denominator // 2
        while True:
            total += numerator
            yield total // denominator


ARRIVALS: dict[str, type[Poisson] | type[Constant] | type[Gamma]] = {
    kind.process: kind for kind in (Poisson, Constant, Gamma)
}
"""Arrival processes by the name that a scenario gives them."""


def as_written(value: float) -> Fraction:
    """The number as its shortest decimal says it (0.1 is one tenth), not as the nearest binary fraction."""
    return Fraction(repr(float(value)))


def _check_rate(rate: float) -> None:
    check_positive("rate", rate)
    if not PS_PER_S / LAST_PS <= rate <= PS_PER_S:
        raise ValueError(
            f"rate: must be from {PS_PER_S / LAST_PS:.3g} to {PS_PER_S:.0e} per second, so that the mean "
            f"gap is at least one tick of the clock and fits 64 bits of them; got {rate!r}"
        )
