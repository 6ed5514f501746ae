"""What a law of lengths is: it draws whole numbers of tokens.

Every law draws a real number, rounds it to the nearest whole token and then clips it to [`min`, `max`]: what falls
outside piles up at the bound, as it does where a service caps its prompts. With `outside: redraw` it is drawn again
instead, as where a service refuses what is too long. Means and quantiles given as parameters are those before that.
A new law is one file with a class like these, and one line in the registry of this room.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from kvsim.workload.arguments import check_whole
from kvsim.workload.arrivals.interface import CHUNK

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

Sampler = Callable[[int], "NDArray[Any]"]
"""Draws so many real numbers; each call goes on where the one before ended."""

Outside = Literal["clip", "redraw"]

_ROUNDS = 10_000
"""Attempts to draw again what fell outside, before a law is taken for one that has nothing inside."""

LONGEST = (1 << 31) - 1
"""The longest length kvsim takes: engines count positions in 32 bits."""


@dataclass(slots=True)
class Tally:
    """How many lengths were drawn, and how many of them fell outside their bounds."""

    drawn: int = 0
    outside: int = 0


@dataclass(frozen=True, kw_only=True)
class LengthDistribution:
    """A law of token counts, whole numbers from `min` (at least 1) to `max` (inclusive).

    ValueError naming the argument where a parameter is missing, not finite or out of range.
    """

    distribution: ClassVar[str]
    min: int = 1
    max: int = LONGEST
    outside: Outside = "clip"

    def __post_init__(self) -> None:
        check_whole("min", self.min, 1, LONGEST)
        check_whole("max", self.max, 1, LONGEST)
        if self.max < self.min:
            raise ValueError(f"max: must be at least min = {self.min}; got {self.max}")
        if self.outside not in ("clip", "redraw"):
            raise ValueError(f"outside: must be clip or redraw; got {self.outside!r}")
        self._check()

    def draw(self, generator: "Generator", count: int) -> "NDArray[Any]":
        """`count` lengths as 64-bit integers; of a single law, drawing n and then m gives those of drawing n + m."""
        return self.whole(self.sampler(generator), count)

    def lengths(self, generator: "Generator", chunk: int = CHUNK, outside: "Tally | None" = None) -> Iterator[int]:
        """Lengths in tokens, without end; the same whatever the `chunk` they are drawn in.

        `outside` counts those that were clipped or drawn again, chunk by chunk.
        """
        sampler = self.sampler(generator)
        while True:
            yield from self.whole(sampler, chunk, outside).tolist()

    def sampler(self, generator: "Generator") -> Sampler:
        """What draws real numbers of this law from now on, so many at a time."""
        return lambda count: self._raw(generator, count)

    def whole(self, sampler: Sampler, count: int, outside: "Tally | None" = None) -> "NDArray[Any]":
        """`count` values of a sampler of this law, rounded and brought within bounds, as 64-bit integers."""
        import numpy as np

        # An overflow to infinity is outside like any other length that is too long.
        with np.errstate(over="ignore"):
            values = np.rint(sampler(count))
        if outside is not None:
            outside.drawn += count
            outside.outside += int(np.count_nonzero((values < self.min) | (values > self.max)))
        if self.outside == "redraw":
            values = self._redrawn(values, sampler)
        lengths: NDArray[Any] = np.clip(values, self.min, self.max).astype(np.int64)
        return lengths

    def _redrawn(self, values: "NDArray[Any]", sampler: Sampler) -> "NDArray[Any]":
        """As many values as came, all inside: those inside, and as many more as are missing."""
        import numpy as np

        kept = values[(values >= self.min) & (values <= self.max)]
        for _ in range(_ROUNDS):
            if len(kept) == len(values):
                return kept
            with np.errstate(over="ignore"):
                more = np.rint(sampler(len(values) - len(kept)))
            kept = np.concatenate((kept, more[(more >= self.min) & (more <= self.max)]))
        raise ValueError(
            f"outside: hardly any length of this {self.distribution} law lies from {self.min} to {self.max}; "
            "widen the bounds, or use clip"
        )

    def describe(self) -> dict[str, object]:
        """The name and the parameters that are set, as a scenario would give them."""
        unset: dict[str, object] = {"min": 1, "max": LONGEST, "outside": "clip"}
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        return {"distribution": self.distribution} | {
            name: value for name, value in given.items() if value is not None and value != unset.get(name)
        }

    def _check(self) -> None:
        raise NotImplementedError

    def _raw(self, generator: "Generator", count: int) -> "NDArray[Any]":
        raise NotImplementedError


def check_max_given(law: LengthDistribution) -> None:
    """ValueError where the law needs a longest length and has none."""
    if law.max == LONGEST:
        raise ValueError(f"max: a {law.distribution} law needs a longest length; none given")
