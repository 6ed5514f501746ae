"""What an arrival process is: one that gives one arrival after the other, for as long as one asks.

The first request arrives one gap after the start, so that n arrivals take n mean gaps. A new process is one file with
a class that has these members, and one line in the registry of this room.
"""

from collections.abc import Iterator
from dataclasses import fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from kvsim.request import PS_PER_S
from kvsim.workload.arguments import check_positive

if TYPE_CHECKING:
    from numpy.random import Generator

CHUNK = 1024
"""Values drawn at a time: enough to make numpy's cost per call vanish. No result depends on it."""

LAST_PS = (1 << 63) - 1
"""The tables of a result hold times as 64-bit picoseconds."""


class ArrivalProcess(Protocol):
    """Makes the arrivals of open traffic; holds its parameters and no state.

    A process draws from the generator it is handed and from its children, and from nothing else.
    """

    process: ClassVar[str]

    @property
    def rate(self) -> float:
        """Mean arrivals per second, in the long run."""

    def arrivals_ps(self, generator: "Generator", chunk: int = CHUNK) -> Iterator[int]:
        """Arrival times in picoseconds from the start, never decreasing; without end, but for stages that end."""

    def describe(self) -> dict[str, object]:
        """The process and its parameters, as a scenario would give them."""


class Described:
    """A process whose parameters are the fields of a dataclass."""

    process: ClassVar[str]

    def describe(self) -> dict[str, object]:
        """The process and its parameters, as a scenario would give them."""
        given: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {"process": self.process} | {name: value for name, value in given.items() if value is not None}


def as_written(value: float) -> Fraction:
    """The number as its shortest decimal says it (0.1 is one tenth), not as the nearest binary fraction."""
    return Fraction(repr(float(value)))


def check_rate(rate: float) -> None:
    """A rate whose mean gap is at least one tick of the clock and fits 64 bits of them; ValueError otherwise."""
    check_positive("rate", rate)
    if not PS_PER_S / LAST_PS <= rate <= PS_PER_S:
        raise ValueError(
            f"rate: must be from {PS_PER_S / LAST_PS:.3g} to {PS_PER_S:.0e} per second, so that the mean "
            f"gap is at least one tick of the clock and fits 64 bits of them; got {rate!r}"
        )
