"""What a study keeps of a run while its records pass by: latencies by request, and the cache over time."""

from array import array
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from kvsim.metrics.memory import SERIES
from kvsim.metrics.requests import Ended, Event, Loss
from kvsim.metrics.tables import Pieces
from kvsim.request import PS_PER_S
from kvsim.study.replication.runs.bins import TimeBins
from kvsim.study.statistics.intervals import Array

LATENCIES = ("queue_s", "prefill_s", "ttft_s", "tpot_s", "e2e_s")
"""Latencies of single requests that a study keeps; names as in the metrics of a run."""

Whole = NDArray[np.int64]

ALONE = -1
"""The session of a request that stands alone."""

_PLACE = {name: place for place, name in enumerate(SERIES)}


class Observing:
    """Hands everything on to other pieces, and keeps some 100 bytes a request and a curve of bounded size."""

    def __init__(self, into: Pieces) -> None:
        self._into = into
        self.rows = into.rows
        self._columns: dict[str, array[float]] = {name: array("d") for name in ("arrival_s", "end_s", *LATENCIES)}
        self._counts = {name: array("q") for name in ("id", "session", "asked_tokens", "hit_tokens", "served_tokens")}
        self.filled = TimeBins()
        """Slots that hold KV, of live requests or cached; of all replicas together."""

    def requests(self, records: list[Ended]) -> None:
        """See `Pieces`."""
        columns, counts = self._columns, self._counts
        for record in records:
            finished = record.end == "finished"
            counts["id"].append(record.id)
            counts["session"].append(ALONE if record.session is None else record.session)
            counts["asked_tokens"].append(record.asked_tokens)
            counts["hit_tokens"].append(record.hit_tokens)
            counts["served_tokens"].append(_served(record))
            columns["arrival_s"].append(record.arrival_ps / PS_PER_S)
            columns["end_s"].append(record.end_ps / PS_PER_S)
            columns["queue_s"].append(_seconds(record.queue_ps))
            columns["prefill_s"].append(_seconds(record.prefill_ps))
            columns["ttft_s"].append(_seconds(record.ttft_ps))
            columns["tpot_s"].append(_seconds(record.tpot_ps))
            columns["e2e_s"].append(_seconds(record.end_ps - record.arrival_ps if finished else None))
        self._into.requests(records)

    def events(self, events: list[Event]) -> None:
        """See `Pieces`."""
        self._into.events(events)

    def losses(self, losses: list[Loss]) -> None:
        """See `Pieces`."""
        self._into.losses(losses)

    def steps(
        self, series: "array[int]", rests: Mapping[int, int], pool_slots: int, *, has_holes: bool, last: bool
    ) -> None:
        """See `Pieces`."""
        rows = np.array(series, dtype=np.int64).reshape(-1, len(SERIES))
        start_ps, duration_ps = rows[:, _PLACE["start_ps"]], rows[:, _PLACE["duration_ps"]]
        filled: Whole = rows[:, _PLACE["used"]] + rows[:, _PLACE["cached"]]
        if rests:
            start_ps, duration_ps, filled = _with_rests(start_ps, duration_ps, filled, rests)
        self.filled.add(start_ps, duration_ps, filled)
        self._into.steps(series, rests, pool_slots, has_holes=has_holes, last=last)

    def tables(self) -> Mapping[str, Mapping[str, Sequence[object]]]:
        """See `Pieces`."""
        return self._into.tables()

    def of_replica(self, number: int) -> "Pieces":
        """See `Pieces`: what all replicas do is observed together."""
        return _OfReplica(self, self._into.of_replica(number))

    def by_request(self) -> dict[str, Array]:
        """Id, session (`ALONE`: none), arrival, end, latencies and tokens of every request, in the order of id.

        NaN where it never got so far.
        """
        order = np.argsort(np.asarray(self._counts["id"]), kind="stable")
        every = {**self._counts, **self._columns}
        return {name: np.asarray(values, dtype=np.float64)[order] for name, values in every.items()}


class _OfReplica(Observing):
    """What one replica of a fleet does goes to the fleet's observer, and its records to their own place."""

    def __init__(self, fleet: Observing, into: Pieces) -> None:
        self._into = into
        self.rows = into.rows
        self._columns, self._counts, self.filled = fleet._columns, fleet._counts, fleet.filled


def mean_levels(start_s: Array, end_s: Array, window_s: tuple[float, float], slices: int) -> Array:
    """How many of some stays, each from a start to an end, there are on average in equal slices of a window."""
    edges = np.linspace(*window_s, slices + 1)
    levels: Array = np.diff(_time_since(start_s, edges) - _time_since(end_s, edges)) / np.diff(edges)
    return levels


def _time_since(moments_s: Array, edges: Array) -> Array:
    """The time that has passed since each of the moments, all added up, at every edge."""
    ordered = np.sort(moments_s)
    counts = np.searchsorted(ordered, edges)
    sums: Array = counts * edges - np.concatenate([[0.0], np.cumsum(ordered)])[counts]
    return sums


def _served(record: Ended) -> int:
    """Output tokens that the request gets: of one that the horizon cuts off all that it would have got."""
    return {"finished": record.generated_tokens, "unfinished": record.output_tokens}.get(record.end, 0)


def _seconds(time_ps: float | None) -> float:
    return float("nan") if time_ps is None else time_ps / PS_PER_S


def _with_rests(
    start_ps: Whole, duration_ps: Whole, levels: Whole, rests: Mapping[int, int]
) -> tuple[Whole, Whole, Whole]:
    """The stretches in which nothing ran and something stayed cached, put between the others."""
    end_ps = start_ps + duration_ps
    idle = np.flatnonzero(start_ps[1:] > end_ps[:-1])
    since = end_ps[idle]
    cached = np.array([rests.get(int(time_ps), 0) for time_ps in since], dtype=np.int64)
    places = idle + 1
    return (
        np.insert(start_ps, places, since),
        np.insert(duration_ps, places, start_ps[places] - since),
        np.insert(levels, places, cached),
    )
