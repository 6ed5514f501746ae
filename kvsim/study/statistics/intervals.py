"""Intervals of a mean by Student's t, and the form in which every interval is handed on."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

LEVEL = 0.95
"""How often an interval covers the truth, unless somebody asks for more or less."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and the interval around it that covers the truth in `level` of all studies.

    `low` and `high` are None where there is no interval: a single sample, or a run that never settles. `samples` is
    how many independent ones it rests on: replications, batches or sessions.
    """

    estimate: float
    low: float | None
    high: float | None
    samples: int
    level: float = LEVEL

    @property
    def half(self) -> float | None:
        """Half its width; where it is not symmetric, its longer side."""
        if self.low is None or self.high is None:
            return None
        return max(self.high - self.estimate, self.estimate - self.low)

    @property
    def relative(self) -> float | None:
        """Half its width as a share of the estimate; None without an interval, and around zero."""
        return None if self.half is None or not self.estimate else self.half / abs(self.estimate)

    def without_bounds(self) -> "Interval":
        """The estimate alone: of something whose interval could not be trusted."""
        return Interval(self.estimate, None, None, self.samples, self.level)


def t_quantile(level: float, degrees: int) -> float:
    """How many standard errors a two-sided interval of this level reaches to each side."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, (1 + level) / 2))


def half_width(samples: ArrayLike, level: float = LEVEL) -> Any:
    """Half the t interval of the mean over the last axis: t s / sqrt(n). ValueError for fewer than two samples."""
    values = np.asarray(samples, dtype=np.float64)
    count = values.shape[-1]
    if count < 2:
        raise ValueError(f"samples must be at least 2 for an interval; got {count}")
    return t_quantile(level, count - 1) * values.std(axis=-1, ddof=1) / np.sqrt(count)


def mean_interval(samples: ArrayLike, level: float = LEVEL) -> Interval:
    """The mean of independent samples with its t interval; of a single one without. ValueError for none."""
    values = np.asarray(samples, dtype=np.float64)
    if not values.size:
        raise ValueError("samples must hold at least one")
    mean = float(values.mean())
    if values.size < 2:
        return Interval(mean, None, None, 1, level)
    half = float(half_width(values, level))
    return Interval(mean, mean - half, mean + half, values.size, level)
