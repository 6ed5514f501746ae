"""A fleet in numbers: the records of its replicas added up, as of one engine that has all their pools."""

from collections.abc import Sequence
from dataclasses import fields, replace

from kvsim.metrics.histogram import DurationHistogram
from kvsim.metrics.prefix import Reuse
from kvsim.metrics.requests import Marks, added
from kvsim.metrics.requests.refusals import Refusals
from kvsim.metrics.summary.run import SHORT_SPAN, MemoryTotals, Moved, RequestTotals, Run
from kvsim.metrics.window import Totals
from kvsim.step import Upkeep


def joined(runs: Sequence[Run], *, end_ps: int) -> Run:
    """The run of several replicas, none of which did anything after `end_ps`, or of one of them up to then.

    Counts and rates are sums, shares are of all pools together, percentiles are of all requests. A `peak_share` and
    `max_running` are made of each replica's own maximum, of different times. The window is that of a single run, for
    all replicas the same. ValueError for `window: saturated`, which each replica would have at other times.
    """
    first = runs[0]
    if first.window == "saturated":
        raise ValueError("window.until: saturated: the replicas of a fleet have their queues at different times")
    opened_ps = first.warmup_ps
    span_ps, whole_ps = first.last_arrival_ps - opened_ps, end_ps - opened_ps
    closes = first.window == "auto" and span_ps > 0 and span_ps * SHORT_SPAN >= whole_ps
    return replace(
        first,
        requests=_Requests([run.requests for run in runs]),
        memory=_Memory([run.memory for run in runs], opened_ps, end_ps),
        gaps=DurationHistogram.joined(run.gaps for run in runs),
        end_ps=end_ps,
        window="auto" if closes else "last_finish",
        moved=Moved(*(sum(getattr(run.moved, part.name) for run in runs) for part in fields(Moved))),
        upkeep=Upkeep(*(sum(getattr(run.upkeep, part.name) for run in runs) for part in fields(Upkeep))),
        padding_tokens=sum(run.padding_tokens for run in runs),
        padding_context_tokens=sum(run.padding_context_tokens for run in runs),
        host_slots=sum(run.host_slots for run in runs),
        left_range=next((run.left_range for run in runs if run.left_range), ()),
        # Most often all caches are emptied at one time.
        flushes=tuple(dict.fromkeys(flush for run in runs for flush in run.flushes)),
        residency=_Reuse([run.residency for run in runs if run.residency is not None]) if first.caches else None,
    )


class _Requests:
    def __init__(self, logs: Sequence[RequestTotals]) -> None:
        self.arrived = sum(log.arrived for log in logs)
        self.clipped = sum(log.clipped for log in logs)
        self.preemptions = sum(log.preemptions for log in logs)
        self.hit_layers = added(*(log.hit_layers for log in logs))
        self.rehit_layers = added(*(log.rehit_layers for log in logs))
        self.refusals = Refusals.joined(log.refusals for log in logs)
        self._marks = Marks.joined(log.marks() for log in logs)

    def marks(self) -> Marks:
        return self._marks


class _Memory:
    def __init__(self, pools: Sequence[MemoryTotals], opened_ps: int, end_ps: int) -> None:
        self.pool_slots = sum(pool.pool_slots for pool in pools)
        self.has_holes = any(pool.has_holes for pool in pools)
        self.steps = sum(pool.steps for pool in pools)
        self.opened_ps = opened_ps
        self._pools = pools
        self.totals = self.until(end_ps)
        closed = [pool.closed for pool in pools if pool.closed is not None]
        self.closed = Totals.joined(closed) if len(closed) == len(pools) else None

    def until(self, now_ps: int) -> Totals:
        return Totals.joined([pool.until(now_ps) for pool in self._pools])

    def stretches(self) -> list[tuple[int, int]]:
        return []


class _Reuse:
    def __init__(self, several: Sequence[Reuse]) -> None:
        self.reuse_distance = DurationHistogram.joined(one.reuse_distance for one in several)
        self.reuse_gap = DurationHistogram.joined(one.reuse_gap for one in several)
        self.idle = DurationHistogram.joined(one.idle for one in several)
        self.lifetime = DurationHistogram.joined(one.lifetime for one in several)
