"""Lengths by their quantiles."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from kvsim.workload.arguments import check_not_negative
from kvsim.workload.lengths.interface import LONGEST, LengthDistribution

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class Empirical(LengthDistribution):
    """A law given by its quantiles.

    `between` them lie straight lines, or straight lines in the logarithm ("geometric"), which follow a heavy tail.
    `quantiles` is a list of [probability, tokens] pairs from probability 0 (the minimum) to 1 (the maximum),
    or a list of tokens at equally spaced probabilities from 0 to 1. Probabilities rise, tokens never fall.
    """

    distribution: ClassVar[str] = "empirical"
    quantiles: Sequence[float] | Sequence[Sequence[float]]
    between: Literal["straight", "geometric"] = "straight"

    def _check(self) -> None:
        if self.between not in ("straight", "geometric"):
            raise ValueError(f"between: must be straight or geometric; got {self.between!r}")
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

        probabilities, values = self._grid
        if self.between == "straight":
            return np.interp(generator.random(count), probabilities, values)
        return np.exp(np.interp(generator.random(count), probabilities, np.log(values)))
