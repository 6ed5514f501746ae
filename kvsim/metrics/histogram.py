"""A histogram of durations whose memory stays flat and whose counts do not depend on how they were added.

Edges are integer picoseconds, and a bucket is at most 1/256 (0.4 %) of its value wide: below 512 ps one bucket a
picosecond, above that 256 buckets to each power of two. So a leap of thousands of steps, whose durations rise by the
same amount each, is added in closed form and leaves exactly the counts of the steps one by one.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import Any

from kvsim.metrics.memory.ramp import Ramp

PERCENTILES = (50, 90, 95, 99)
"""Those that are told of every distribution."""

_PER_OCTAVE = 256


def bucket_of(value_ps: int) -> int:
    """The bucket that holds `value_ps` >= 0."""
    shift = value_ps.bit_length() - 9
    return shift * _PER_OCTAVE + (value_ps >> shift) if shift > 0 else value_ps


def lower_edge(bucket: int) -> int:
    """The smallest duration in picoseconds that falls into `bucket`."""
    shift = bucket // _PER_OCTAVE - 1
    return (bucket - shift * _PER_OCTAVE) << shift if shift > 0 else bucket


class DurationHistogram:
    """Counts per bucket, with the exact number, sum and maximum of what was added."""

    __slots__ = ("count", "counts", "max_ps", "sum_ps")

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        self.count = 0
        self.sum_ps = 0
        self.max_ps = 0

    def add(self, value_ps: int, times: int = 1) -> None:
        """Add one duration `times` times."""
        if not times:
            return
        bucket = bucket_of(value_ps)
        self.counts[bucket] = self.counts.get(bucket, 0) + times
        self.count += times
        self.sum_ps += value_ps * times
        if value_ps > self.max_ps:
            self.max_ps = value_ps

    @classmethod
    def joined(cls, several: Iterable["DurationHistogram"]) -> "DurationHistogram":
        """What all of them hold together."""
        whole = cls()
        for one in several:
            for bucket, count in one.counts.items():
                whole.counts[bucket] = whole.counts.get(bucket, 0) + count
            whole.count += one.count
            whole.sum_ps += one.sum_ps
            whole.max_ps = max(whole.max_ps, one.max_ps)
        return whole

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> "DurationHistogram":
        """The histogram that `told` says, as `telling` said it."""
        whole = cls()
        whole.counts = {bucket_of(lowest): count for lowest, count in told["counts"]}
        whole.count = sum(whole.counts.values())
        whole.sum_ps, whole.max_ps = told["sum_ps"], told["max_ps"]
        return whole

    def telling(self) -> dict[str, Any]:
        """All of it in plain numbers: sum, maximum, and the smallest duration of each bucket with its count."""
        counts = [[lower_edge(bucket), self.counts[bucket]] for bucket in sorted(self.counts)]
        return {"sum_ps": self.sum_ps, "max_ps": self.max_ps, "counts": counts}

    def add_ramp(self, first_ps: int, rise_ps: int, steps: int, times: int, bend_ps: int = 0) -> None:
        """Add the `steps` durations first + rise j + bend j (j - 1) / 2, each `times` times. O(buckets crossed)."""
        if not times:
            return
        counts, done = self.counts, 0
        if bend_ps:
            ramp = Ramp(first_ps, rise_ps, bend_ps)
            while done < steps:
                bucket = bucket_of(ramp.step(done))
                upto = bisect_left(range(steps), lower_edge(bucket + 1), lo=done, key=ramp.step)
                counts[bucket] = counts.get(bucket, 0) + times * (upto - done)
                done = upto
            sum_ps, last_ps = ramp.until(steps), ramp.step(steps - 1)
        else:
            last_ps = first_ps + rise_ps * (steps - 1)
            last_bucket = bucket_of(last_ps)
            while (bucket := bucket_of(first_ps + rise_ps * done)) != last_bucket:
                upto = -(-(lower_edge(bucket + 1) - first_ps) // rise_ps)
                counts[bucket] = counts.get(bucket, 0) + times * (upto - done)
                done = upto
            counts[bucket] = counts.get(bucket, 0) + times * (steps - done)
            sum_ps = first_ps * steps + rise_ps * (steps * (steps - 1) // 2)
        self.count += times * steps
        self.sum_ps += times * sum_ps
        if last_ps > self.max_ps:
            self.max_ps = last_ps

    def at_most(self, value_ps: int) -> int:
        """How many values are at most this, to half a bucket (0.2 %)."""
        return sum(
            count
            for bucket, count in self.counts.items()
            if lower_edge(bucket) + lower_edge(bucket + 1) - 1 <= 2 * value_ps
        )

    def quantile_ps(self, share: float) -> float | None:
        """The duration below which `share` of the values lie, to the middle of its bucket; None when empty."""
        if not self.count:
            return None
        rank = share * (self.count - 1)
        seen = 0
        for bucket in sorted(self.counts):
            seen += self.counts[bucket]
            if seen > rank:
                low, high = lower_edge(bucket), lower_edge(bucket + 1)
                return min((low + high - 1) / 2, float(self.max_ps))
        return float(self.max_ps)

    def spread(self, unit: int) -> dict[str, float] | None:
        """Mean and maximum, exact, and percentiles to half a bucket (0.2 %), in `unit`; None when empty."""
        if not self.count:
            return None
        return {
            "mean": self.sum_ps / self.count / unit,
            **{f"p{p}": (self.quantile_ps(p / 100) or 0.0) / unit for p in PERCENTILES},
            "max": self.max_ps / unit,
        }
