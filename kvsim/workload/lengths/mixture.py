"""Lengths of several laws, each with its share."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from kvsim.workload.arguments import check_positive
from kvsim.workload.lengths.interface import LengthDistribution, Sampler

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class Mixture(LengthDistribution):
    """Each length is drawn from one of the laws in `parts`, a list of (weight, law); weights need not add up to 1.

    Each part clips to its own bounds, and the mixture to its own after that.
    """

    distribution: ClassVar[str] = "mixture"
    parts: Sequence[tuple[float, LengthDistribution]]

    def _check(self) -> None:
        if not self.parts:
            raise ValueError("parts: a mixture needs at least one part; got none")
        for weight, _ in self.parts:
            check_positive("weight", weight)

    def sampler(self, generator: "Generator") -> Sampler:
        """See `LengthDistribution`. The choice and each part draw from generators of their own."""
        import numpy as np

        chooser, *own = generator.spawn(1 + len(self.parts))
        samplers = [law.sampler(child) for (_, law), child in zip(self.parts, own, strict=True)]
        ends = np.cumsum([float(weight) for weight, _ in self.parts])
        ends /= ends[-1]

        def sample(count: int) -> "NDArray[Any]":
            chosen = np.searchsorted(ends, chooser.random(count), side="right")
            values = np.empty(count)
            for index, ((_, law), sampler) in enumerate(zip(self.parts, samplers, strict=True)):
                places = np.flatnonzero(chosen == index)
                if len(places):
                    values[places] = law.whole(sampler, len(places))
            return values

        return sample

    def describe(self) -> dict[str, object]:
        """The name and the parts, as a scenario would give them."""
        parts = [{"weight": weight} | law.describe() for weight, law in self.parts]
        return super().describe() | {"parts": parts}
