"""Lengths as a recording has them, by name."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal

from kvsim.errors import InputError
from kvsim.workload.lengths.continuous.lognormal import Lognormal
from kvsim.workload.lengths.empirical import Empirical
from kvsim.workload.lengths.interface import LengthDistribution, Sampler
from kvsim.workload.lengths.mixture import Mixture
from kvsim.workload.presets.files import length_preset

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from numpy.random import Generator
    from numpy.typing import NDArray

Of = Literal["prompt_tokens", "output_tokens", "new_tokens", "turns", "think_s"]
Form = Literal["quantiles", "lognormals"]

_MS = 1000


@dataclass(frozen=True, kw_only=True)
class Preset(LengthDistribution):
    """What preset `preset` recorded `of` a variable.

    `form` "quantiles": straight lines between its percentiles and the 99.9th. "lognormals": three lognormal laws
    fitted to it, clipped to what was seen. Think times are drawn in whole milliseconds. ValueError where there is no
    such preset, or it does not tell of that variable.
    """

    distribution: ClassVar[str] = "preset"
    preset: str
    of: Of = "prompt_tokens"
    form: Form = "quantiles"

    def _check(self) -> None:
        if self.form not in ("quantiles", "lognormals"):
            raise ValueError(f"form: must be quantiles or lognormals; got {self.form!r}")
        try:
            entry = length_preset(self.preset)
        except InputError as error:
            raise ValueError(f"preset: {error}") from None
        if self.of not in entry:
            told = ", ".join(word for word in entry if word not in ("about", "source", "licence"))
            raise ValueError(f"of: {self.preset} does not tell of {self.of}; it has {told}")

    @cached_property
    def recorded(self) -> "Mapping[str, Any]":
        """What the data file holds of the variable."""
        facts: Mapping[str, Any] = length_preset(self.preset)[self.of]
        return facts

    @cached_property
    def law(self) -> LengthDistribution:
        """The law that this name stands for."""
        facts, unit = self.recorded, _MS if self.of == "think_s" else 1
        percentiles = [value * unit for value in facts["percentiles"]]
        low, high = max(1, round(percentiles[0])), round(percentiles[-1])
        if self.form == "quantiles":
            *upto_99, longest = percentiles
            pairs = [(percent / 100, value) for percent, value in enumerate(upto_99)]
            pairs += [(0.999, facts["p99.9"] * unit), (1.0, longest)]
            return Empirical(quantiles=pairs, between="geometric", min=low)
        from math import log

        laws = [(w, Lognormal(mu=mu + log(unit), sigma=sigma)) for w, mu, sigma in facts["lognormals"]]
        return Mixture(parts=laws, min=low, max=high)

    def sampler(self, generator: "Generator") -> Sampler:
        """See `LengthDistribution`."""
        law = self.law
        sampler = law.sampler(generator)

        def sample(count: int) -> "NDArray[Any]":
            return law.whole(sampler, count)

        return sample
