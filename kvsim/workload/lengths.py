"""How long prompts and outputs are: distributions of token counts.

Every distribution draws a real number, rounds it to the nearest whole token and then clips it to [`min`,
`max`]: what falls outside piles up at the bound, as it does where a service caps its prompts. Means and
quantiles given as parameters are those before rounding and clipping.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from math import isfinite, log
from typing import TYPE_CHECKING, Any, ClassVar

from kvsim.workload.arguments import check_not_negative, check_positive, check_whole
from kvsim.workload.arrivals import CHUNK

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

LONGEST = (1 << 31) - 1
"""The longest length kvsim takes: engines count positions in 32 bits."""

_ZIPF_VALUES = 1 << 24
"""The table of a Zipf law holds 8 bytes per length in its range; this many (128 MiB) is past every context
window.
"""


@dataclass(frozen=True, kw_only=True)
class LengthDistribution:
    """A law of token counts, whole numbers from `min` (at least 1) to `max` (inclusive).

    ValueError naming the argument where a parameter is missing, not finite or out of range.
    """

    distribution: ClassVar[str]
    min: int = 1
    max: int = LONGEST

    def __post_init__(self) -> None:
        check_whole("min", self.min, 1, LONGEST)
        check_whole("max", self.max, 1, LONGEST)
        if self.max < self.min:
            raise ValueError(f"max: must be at least min = {self.min}; got {self.max}")
        self._check()

    def draw(self, generator: "Generator", count: int) -> "NDArray[Any]":
        """`count` lengths as 64-bit integers. Drawing n and then m gives the same values as drawing n + m."""
        import numpy as np

        # An overflow to infinity is clipped like any other length that is too long.
        with np.errstate(over="ignore"):
            values = self._raw(generator, count)
        lengths: NDArray[Any] = np.clip(np.rint(values), self.min, self.max).astype(np.int64)
        return lengths

    def lengths(self, generator: "Generator", chunk: int = CHUNK) -> Iterator[int]:
        """Lengths in tokens, without end; the same whatever the `chunk` they are drawn in."""
        while True:
            yield from self.draw(generator, chunk).tolist()

    def describe(self) -> dict[str, object]:
        """The name and the parameters that are set, as a scenario would give them."""
        unset: dict[str, object] = {"min": 1, "max": LONGEST}
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        return {"distribution": self.distribution} | {
            name: value for name, value in given.items() if value is not None and value != unset.get(name)
        }

    def _check(self) -> None:
        raise NotImplementedError

    def _raw(self, generator: "Generator", count: int) -> "NDArray[Any]":
        raise NotImplementedError


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


@dataclass(frozen=True, kw_only=True)
class Uniform(LengthDistribution):
    """Every whole number from `min` to `max`, both included, equally often."""

    distribution: ClassVar[str] = "uniform"

    def _check(self) -> None:
        _check_max_given(self)

    def _raw(self, generator: "Generator", count: int) -> "NDArray[Any]":
        return generator.integers(self.min, self.max, count, endpoint=True)


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


@dataclass(frozen=True, kw_only=True)
class Exponential(LengthDistribution):
    """Exponential law of mean `mean` (tokens)."""

    distribution: ClassVar[str] = "exponential"
    mean: float

    def _check(self) -> None:
        check_positive("mean", self.mean)

    def _raw(self, generator: "Generator", count: int) -> "NDArray[Any]":
        return generator.exponential(self.mean, count)


@dataclass(frozen=True, kw_only=True)
class Zipf(LengthDistribution):
    """Truncated Zipf law: P(k) proportional to k**-`theta` for the whole numbers k from `min` to `max`.

    `theta` 0 is uniform. The first draw computes a table of 8 bytes per length in the range.
    """

    distribution: ClassVar[str] = "zipf"
    theta: float

    def _check(self) -> None:
        check_not_negative("theta", self.theta)
        _check_max_given(self)
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


@dataclass(frozen=True, kw_only=True)
class Empirical(LengthDistribution):
    """A law given by its quantiles, straight lines between them.

    `quantiles` is a list of [probability, tokens] pairs from probability 0 (the minimum) to 1 (the maximum),
    or a list of tokens at equally spaced probabilities from 0 to 1. Probabilities rise, tokens never fall.
    """

    distribution: ClassVar[str] = "empirical"
    quantiles: Sequence[float] | Sequence[Sequence[float]]

    def _check(self) -> None:
        probabilities, values = self._grid
        if probabilities[0] != 0 or probabilities[-1] != 1:
            raise ValueError(
                "quantiles: must start at probability 0 and end at 1; "
                f"got {probabilities[0]!r} to {probabilities[-1]!r}"
            )
        for before, after in pairwise(probabilities):
            if not before < after:
                raise ValueError(f"quantiles: probabilities must rise; got {before!r} and then {after!r}")
        for before, after in pairwise(values):
            if before > after:
                raise ValueError(f"quantiles: tokens must not fall; got {before!r} and then {after!r}")
        if not 1 <= values[0] <= values[-1] <= LONGEST:
            raise ValueError(f"quantiles: tokens must be from 1 to {LONGEST}; got {values[0]!r} to {values[-1]!r}")

    @cached_property
    def _grid(self) -> tuple[list[float], list[float]]:
        points: object = self.quantiles
        if not isinstance(points, list | tuple) or len(points) < 2:
            raise ValueError(f"quantiles: must be a list of at least two; got {points!r}")
        pairs = [tuple(point) if isinstance(point, list | tuple) else (point,) for point in points]
        width = len(pairs[0])
        if width not in (1, 2) or any(len(pair) != width for pair in pairs):
            raise ValueError("quantiles: must be all tokens, or all [probability, tokens] pairs")
        for number in (number for pair in pairs for number in pair):
            check_not_negative("quantiles", number)
        values = [pair[-1] for pair in pairs]
        if width == 2:
            return [pair[0] for pair in pairs], values
        return [i / (len(values) - 1) for i in range(len(values))], values

    def _raw(self, generator: "Generator", count: int) -> "NDArray[Any]":
        import numpy as np

        return np.interp(generator.random(count), *self._grid)


LENGTHS: dict[str, type[LengthDistribution]] = {
    kind.distribution: kind for kind in (Constant, Uniform, Lognormal, Gamma, Exponential, Zipf, Empirical)
}
"""Length distributions by the name that a scenario gives them."""


def _check_max_given(law: LengthDistribution) -> None:
    if law.max == LONGEST:
        raise ValueError(f"max: a {law.distribution} law needs a longest length; none given")
