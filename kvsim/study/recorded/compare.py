"""Measured beside simulated: one row for each quantity that both sides tell, with the distance."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kvsim.study.recorded.measured import LATENCIES, PERCENTILES, Column, Measured

NAMES = {"ttft_s": "TTFT", "tpot_s": "TPOT", "e2e_s": "E2E"}
UNITS = {"ttft_s": "s", "tpot_s": "s", "e2e_s": "s"}
PREEMPTIONS = "preemptions"
MEANS = {
    "running": ("running", "requests", False),
    "running_queueing": ("running while any wait", "requests", True),
    "waiting": ("waiting", "requests", False),
    "kv_share": ("KV use", "share", False),
    "kv_share_queueing": ("KV use while any wait", "share", True),
    "output_tokens_per_s": ("output tokens", "per s", False),
}


@dataclass(frozen=True, slots=True)
class Row:
    """One quantity on both sides. `error`: simulated / measured - 1, of shares the difference; None where that is not
    to be had. `distance`: the mean distance over the moments of the series, in the quantity's own unit."""  # fmt: skip

    key: str
    label: str
    unit: str
    measured: float | None
    simulated: float | None
    distance: float | None = None

    @property
    def error(self) -> float | None:
        """See the class."""
        if self.measured is None or self.simulated is None:
            return None
        if self.unit == "share":
            return self.simulated - self.measured
        return self.simulated / self.measured - 1 if self.measured else None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Both sides and the rows; `pairs`: median |simulated / measured - 1| request by request, by latency."""

    measured: Measured
    simulated: Measured
    rows: tuple[Row, ...]
    pairs: dict[str, float]

    def row(self, key: str) -> Row:
        """The row of that key. KeyError where neither side tells it."""
        return next(row for row in self.rows if row.key == key)

    def as_json(self) -> dict[str, Any]:
        """Rows by key, for programs."""
        return {
            "measured": self.measured.source,
            "rows": {
                row.key: {
                    "unit": row.unit,
                    "measured": row.measured,
                    "simulated": row.simulated,
                    "error": row.error,
                    **({} if row.distance is None else {"mean_distance": row.distance}),
                }
                for row in self.rows
            },
            "request_by_request": self.pairs,
        }


def compare(measured: Measured, simulated: Measured) -> Comparison:
    """Lay both sides beside each other; what the measured side does not tell is left out, but for preemptions."""
    rows = (*_latencies(measured, simulated), *_gauges(measured, simulated))
    told = tuple(row for row in rows if row.measured is not None or row.key == PREEMPTIONS)
    return Comparison(measured, simulated, told, _pairs(measured, simulated))


def _latencies(measured: Measured, simulated: Measured) -> Iterator[Row]:
    for name in LATENCIES:
        ours, theirs = simulated.statistics(name), measured.statistics(name)
        for key in ("mean", *(f"p{p}" for p in PERCENTILES)):
            yield Row(f"{name}.{key}", f"{NAMES[name]} {key}", UNITS[name], theirs.get(key), ours.get(key))


def _gauges(measured: Measured, simulated: Measured) -> Iterator[Row]:
    for key, (label, unit, queueing) in MEANS.items():
        name = key.removesuffix("_queueing")
        mean = measured.mean(name, queueing)
        distance = None if queueing else _distance(measured, simulated, name)
        if name == "output_tokens_per_s" and measured.series is None:
            mean, ours = measured.output_tokens_per_s, simulated.output_tokens_per_s
        else:
            ours = simulated.mean(name, queueing, _told(measured, name))
        yield Row(key, label, unit, mean, ours, distance)
    yield Row("hit_rate", "prefix hit rate", "share", measured.hit_rate, simulated.hit_rate)
    counts = [None if side.preemptions is None else float(side.preemptions) for side in (measured, simulated)]
    yield Row(PREEMPTIONS, "preemptions", "", *counts)


def _told(measured: Measured, name: str) -> npt.NDArray[np.bool_] | None:
    """The moments at which the measured side tells a gauge; None: it has no series of it."""
    theirs = None if measured.series is None else measured.series.get(name)
    return None if theirs is None else ~np.isnan(theirs)


def _distance(measured: Measured, simulated: Measured, name: str) -> float | None:
    """Mean of |simulated - measured| over the moments of the measured series."""
    both = [None if side.series is None else side.series.get(name) for side in (measured, simulated)]
    theirs, ours = both
    if theirs is None or ours is None or len(theirs) != len(ours):
        return None
    apart = np.abs(ours - theirs)
    return float(np.nanmean(apart)) if len(apart) and not np.isnan(apart).all() else None


def _pairs(measured: Measured, simulated: Measured) -> dict[str, float]:
    """Request by request where both sides have the same ones in the same order."""
    theirs, ours = measured.requests, simulated.requests
    if theirs is None or ours is None or len(theirs) != len(ours):
        return {}
    if not (_same(theirs.prompt_tokens, ours.prompt_tokens) and _same(theirs.output_tokens, ours.output_tokens)):
        return {}
    found = {}
    for name in LATENCIES:
        was, now = theirs.latency(name), ours.latency(name)
        known = ~np.isnan(was) & ~np.isnan(now) & (was > 0)
        if known.any():
            found[name] = float(np.median(np.abs(now[known] / was[known] - 1)))
    return found


def _same(one: Column, other: Column) -> bool:
    return bool(np.array_equal(one, other))
