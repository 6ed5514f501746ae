"""What processes of changing rate share: a course of rates, and gaps that follow it.

A process with gaps of mean 1 runs on a clock of its own, which advances by the integral of the rate. Exponential gaps
make it the Poisson process of that rate, exactly; gaps of another coefficient of variation are as much more or less
even at every rate.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from kvsim.request import PS_PER_S
from kvsim.workload.arrivals.interface import CHUNK, Described, check_rate
from kvsim.workload.arrivals.renewal.interface import check_cv

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

_PIECES = 64
"""Pieces of the course that are looked at together. No result depends on it beyond a float's last digits."""


class Piece(NamedTuple):
    """Some seconds in which the rate (arrivals per second) goes from one value to another in a straight line."""

    duration_s: float
    rate: float
    end_rate: float


@dataclass(frozen=True, kw_only=True)
class Modulated(Described):
    """Arrivals of mean rate `rate` that follow a course; `cv` is that of the gaps at a steady rate (1: Poisson)."""

    rate: float
    cv: float = 1.0

    def __post_init__(self) -> None:
        check_rate(self.rate)
        check_cv(self.cv, self.rate)
        self._check()

    def _check(self) -> None:
        """ValueError where the parameters of the course are wrong."""

    def course(self, generator: "Generator") -> Iterator[Piece]:
        """The pieces of the course, one after the other; arrivals end where they do."""
        raise NotImplementedError

    def arrivals_ps(self, generator: "Generator", chunk: int = CHUNK) -> Iterator[int]:
        """Arrival times in picoseconds from the start, never decreasing; they end with the course, if it ends."""
        import numpy as np

        # Apart, so that the course is the same however many arrivals are drawn at a time.
        of_gaps, of_course = generator.spawn(2)
        pieces = self.course(of_course)
        start_ps = last_ps = 0
        gaps = self._gaps(of_gaps, chunk)
        at, gaps = float(gaps[0]), gaps[1:]
        while batch := list(islice(pieces, _PIECES)):
            stretch = _Stretch(batch)
            while at < stretch.arrivals:
                # One by one, as `cumsum` adds: the sums are the same however many gaps there are at a time.
                places = np.cumsum(np.concatenate(([at], gaps)))
                inside = int(np.searchsorted(places, stretch.arrivals))
                for time_ps in stretch.times_ps(places[:inside]).tolist():
                    last_ps = max(last_ps, start_ps + int(time_ps))
                    yield last_ps
                if inside < len(places):
                    at, gaps = float(places[inside]), gaps[inside:]
                else:
                    at, gaps = float(places[-1]), self._gaps(of_gaps, chunk)
                    at, gaps = at + float(gaps[0]), gaps[1:]
            at -= stretch.arrivals
            start_ps += round(stretch.duration_s * PS_PER_S)

    def _gaps(self, generator: "Generator", count: int) -> "NDArray[Any]":
        """Gaps of mean 1."""
        if self.cv == 1:
            return generator.exponential(1, count)
        variance = self.cv * self.cv
        return generator.gamma(1 / variance, variance, count)


class _Stretch:
    """Pieces one behind the other, and the way back from a count of arrivals to a time."""

    def __init__(self, pieces: list[Piece]) -> None:
        import numpy as np

        durations, self._rates, ends = np.array(pieces).T
        self._slopes = (ends - self._rates) / durations
        counts = np.cumsum(durations * (self._rates + ends) / 2)
        times = np.cumsum(durations)
        self.arrivals, self.duration_s = float(counts[-1]), float(times[-1])
        self._counts = np.concatenate(([0.0], counts))
        self._times = np.concatenate(([0.0], times))

    def times_ps(self, places: "NDArray[Any]") -> "NDArray[Any]":
        """When the mean number of arrivals since the start reaches each of `places`, in picoseconds, as floats."""
        import numpy as np

        index = np.searchsorted(self._counts, places, side="right") - 1
        beyond, rate, slope = places - self._counts[index], self._rates[index], self._slopes[index]
        # rate x + slope x**2 / 2 = beyond, solved so that a slope of 0 is no special case.
        root = np.sqrt(np.maximum(0.0, rate * rate + 2 * slope * beyond))
        times: NDArray[Any] = np.minimum(self._times[index] + 2 * beyond / (rate + root), self._times[index + 1])
        times_ps: NDArray[Any] = np.rint(times * PS_PER_S)
        return times_ps
