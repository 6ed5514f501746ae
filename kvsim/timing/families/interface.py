"""A kernel family: a formula with a few physical parameters, for many rows of shapes at once.

Rows are columns of equal length by name, parameters numbers by name. Every parameter is positive; one that does
nothing is close to 0. Fits work on logarithms, so a share and a number of microseconds are treated alike.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from kvsim.timing.families.device import Device

Column = npt.NDArray[np.float64]
Rows = Mapping[str, Column]
Values = Mapping[str, float]

MICROSECOND = 1e-6
NANOSECOND = 1e-9

CACHE_SHARPNESS = 12.0
"""How abruptly a working set stops fitting a cache that is read in a loop (power of the ratio of the sizes)."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One physical parameter: its unit, the value to begin a fit with, the bounds that make sense, its meaning.

    `spread` is how far from its start it may well lie, in powers of e: the width of its prior.
    """

    name: str
    unit: str
    start: float
    low: float
    high: float
    meaning: str
    spread: float = 1.0


class Family(Protocol):
    """One kind of kernel. Pure."""

    @property
    def name(self) -> str:
        """Kind and variant: `linear:fp8`."""
        ...

    @property
    def parameters(self) -> Sequence[Parameter]:
        """What is fitted."""
        ...

    @property
    def columns(self) -> Sequence[str]:
        """Shape columns that `seconds` reads; zero work takes no more than the fixed cost."""
        ...

    def seconds(self, values: Values, rows: Rows, device: Device) -> Column:
        """Seconds of one kernel per row. `values` holds every parameter; nothing is checked here."""
        ...


class Beginning(Family, Protocol):
    """A family that finds in the measured times themselves where a fit is to begin."""

    def begins(self, rows: Rows, seconds: Column) -> Sequence[dict[str, float]]:
        """Values near the fit, of parameters that it has or not; several where it is not plain which of two rules."""
        ...


def power_mean(first: Column, second: Column, power: float) -> Column:
    """Two times that overlap in part: the larger of them for a high power, their sum for 1."""
    large, small = np.maximum(first, second), np.minimum(first, second)
    ratio = np.divide(small, large, out=np.zeros_like(large), where=large > 0)
    return np.asarray(large * (1 + ratio**power) ** (1 / power))


def starts(family: Family) -> dict[str, float]:
    """The values that a fit begins with."""
    return {one.name: one.start for one in family.parameters}
