"""From the recorders of a run to the numbers people read: the `metrics` and `pools` of the JSON contract.

Everything is exact up to the last division: shares are quotients of integrals, latencies are taken from the request
records, and only the inter-token latency comes from a histogram.
"""

from array import array
from collections.abc import Mapping
from collections.abc import Sequence as Seq
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from kvsim.metrics.histogram import PERCENTILES, DurationHistogram
from kvsim.metrics.memory import AddressLog
from kvsim.metrics.prefix import Reuse, prefix_metrics
from kvsim.metrics.requests import Marks
from kvsim.metrics.requests.refusals import Refusals
from kvsim.metrics.tenants import tenant_metrics
from kvsim.metrics.window import Totals
from kvsim.request import PS_PER_S
from kvsim.step import CAUSES, CLASSES, ENDS, Upkeep

SHORT_SPAN = 10
"""Where arrivals span less than a tenth of the run, the window goes on to the last finish."""


@dataclass(frozen=True, slots=True)
class Slo:
    """Latency goals in picoseconds; None where there is none. `classes` of service have theirs in place of these."""

    ttft_ps: int | None = None
    tpot_ps: int | None = None
    e2e_ps: int | None = None
    classes: Mapping[str, "Slo"] = field(default_factory=dict)

    @property
    def any(self) -> bool:
        """At least one goal is set."""
        own = (self.ttft_ps, self.tpot_ps, self.e2e_ps) != (None, None, None)
        return own or any(goals.any for goals in self.classes.values())

    def met(self, ttft_ps: int, e2e_ps: int, gaps: int) -> bool:
        """A finished request with so many gaps between tokens met every goal; one of one token meets any TPOT."""
        return (
            (self.ttft_ps is None or ttft_ps <= self.ttft_ps)
            and (self.e2e_ps is None or e2e_ps <= self.e2e_ps)
            and (self.tpot_ps is None or not gaps or e2e_ps - ttft_ps <= self.tpot_ps * gaps)
        )


@dataclass(frozen=True, slots=True)
class Moved:
    """Bytes of KV that changed their place, on each rank."""

    copied_bytes: int = 0
    """Inside the pool: regions that grow or slide, blocks copied on write."""
    gathered_bytes: int = 0
    """To keep the batch of a padded kernel compact."""
    swapped_bytes: int = 0
    """To host memory and back."""


class RequestTotals(Protocol):
    """What the summary asks of request records (see `RequestLog`)."""

    arrived: int
    clipped: int
    hit_layers: tuple[int, ...]
    rehit_layers: tuple[int, ...]
    refusals: Refusals

    @property
    def preemptions(self) -> int:
        """How often a running request lost its KV."""

    def marks(self) -> Marks:
        """What is left of all records."""


class MemoryTotals(Protocol):
    """What the summary asks of a record of steps (see `MemoryRecorder`)."""

    pool_slots: int
    has_holes: bool
    steps: int
    opened_ps: int
    totals: Totals
    closed: Totals | None

    def until(self, now_ps: int) -> Totals:
        """The sums as they stand at `now_ps`, not before the end."""

    def stretches(self) -> list[tuple[int, int]]:
        """The time in which requests were left waiting."""


@dataclass(frozen=True, slots=True)
class Run:
    """What the summary is made of. `window` is "auto", "last_finish" or "saturated"."""

    requests: RequestTotals
    memory: MemoryTotals
    gaps: DurationHistogram
    end_ps: int
    last_arrival_ps: int
    block_size: int | None
    window: str
    slo: Slo
    warmup_ps: int = 0
    moved: Moved = Moved()
    upkeep: Upkeep = field(default_factory=Upkeep)
    padding_tokens: int = 0
    padding_context_tokens: int = 0
    device_bytes: Mapping[str, int] | None = None
    """The ledger of one rank's card at the largest step."""
    host_slots: int = 0
    """Slots of host memory for swapped requests."""
    caches: bool = False
    """Prefixes that were computed once could be found again."""
    addresses: AddressLog | None = None
    """Only where it was asked for."""
    left_range: Seq[str] = ()
    """Where steps lay outside the range that their times were fitted to, in words; of a fleet, those of one replica."""
    residency: Reuse | None = None
    """What became of what was cached; only where `caches` says so."""
    flushes: tuple[tuple[int, int | None], ...] = ()
    """When the cache was to be emptied, and when that was done (None: never)."""


def measured(run: Run) -> tuple[int, int, Totals]:
    """The measured window: from, to (picoseconds) and the sums over it; nothing where the warm-up outlasts the run."""
    if run.warmup_ps > run.end_ps:
        return run.end_ps, run.end_ps, Totals()
    opened_ps, closed = run.memory.opened_ps, run.memory.closed
    span_ps, whole_ps = run.last_arrival_ps - opened_ps, run.end_ps - opened_ps
    if run.window == "auto" and closed is not None and span_ps > 0 and span_ps * SHORT_SPAN >= whole_ps:
        return opened_ps, run.last_arrival_ps, closed
    return opened_ps, run.end_ps, run.memory.totals


def stretches(run: Run) -> list[tuple[int, int]]:
    """The measured time as (from, to) in picoseconds: one stretch, or those in which the queue was not empty."""
    opened_ps, closes_ps, _ = measured(run)
    if opened_ps == closes_ps:
        return []
    if run.window != "saturated":
        return [(opened_ps, closes_ps)]
    return [(max(start, opened_ps), end) for start, end in run.memory.stretches() if end > opened_ps]


def metrics(run: Run) -> dict[str, Any]:
    """The `metrics` object of the JSON contract; a number that does not exist is None."""
    opened_ps, closes_ps, totals = measured(run)
    pool = run.memory.pool_slots
    length_ps = totals.time_ps
    log = run.requests
    marks, time = log.marks(), stretches(run)
    inside, out = marks.arrived_in(time), marks.finished_in(time)
    done = marks.finished(inside)
    return {
        "pool_tokens": pool or None,
        "pool_blocks": None if run.block_size is None else pool // run.block_size,
        "mean_share": shares(totals.slots_ps, pool * length_ps),
        "peak_share": shares(totals.peaks, pool),
        "mean_running": _ratio(totals.running_ps, length_ps),
        "max_running": totals.max_running,
        "mean_waiting": _ratio(totals.stay_ps - totals.requests_ps, length_ps),
        "arrived": log.arrived,
        **{end: marks.ends[end] for end in ENDS},
        "preemptions": log.preemptions,
        "lost_tokens": marks.lost_tokens,
        "recomputed_tokens": marks.recomputed_tokens,
        "hit_tokens": marks.hit_tokens,
        "rehit_tokens": marks.rehit_tokens,
        "device_bytes": run.device_bytes,
        "swapped_tokens": marks.swapped_tokens,
        **asdict(run.moved),
        "padding_tokens": run.padding_tokens,
        "padding_context_tokens": run.padding_context_tokens,
        "upkeep": asdict(run.upkeep),
        "shared_share": _ratio(totals.shared_ps, pool * length_ps),
        "saved_share": _ratio(totals.shared_ps, _allocated_ps(totals) + totals.shared_ps),
        "duplicate_share": None if run.caches else _ratio(totals.duplicate_ps, pool * length_ps),
        "fragmentation": _ratio(totals.scattered_ps, _free_ps(totals)) if run.memory.has_holes else None,
        "unusable_share": _ratio(totals.unusable_ps, totals.free_waiting_ps) if run.memory.has_holes else None,
        "blocked": {cause: marks.causes[cause] for cause in CAUSES},
        **prefix_metrics(run.residency if run.caches else None, log, inside),
        "queue_s": spread(marks.queue_ps(inside)),
        "prefill_s": spread(marks.prefill_ps(inside)),
        "ttft_s": spread(marks.ttft_ps(inside)),
        "tpot_s": spread(marks.tpot_ps(done)),
        "itl_s": run.gaps.spread(PS_PER_S) if length_ps else None,
        "e2e_s": spread(marks.e2e_ps(done)),
        "output_tokens_per_s": _ratio(totals.tokens * PS_PER_S, length_ps),
        "requests_per_s": _ratio(sum(out) * PS_PER_S, length_ps),
        "goodput_per_s": _goodput_per_s(marks, out, run.slo, length_ps),
        "slo_classes": _by_class(marks, inside, out, run.slo, length_ps),
        **tenant_metrics(
            marks,
            inside,
            out,
            spread=spread,
            goodput_per_s=lambda own: _goodput_per_s(marks, own, run.slo, length_ps),
            pool_token_ps=pool * run.end_ps,
            caches=run.caches,
        ),
        "simulated_s": run.end_ps / PS_PER_S,
        "steps": run.memory.steps,
        "clipped_outputs": log.clipped,
        "window_s": [opened_ps / PS_PER_S, closes_ps / PS_PER_S],
        "measured_s": length_ps / PS_PER_S,
    }


def _goodput_per_s(marks: Marks, out: bytearray, slo: Slo, length_ps: int) -> float | None:
    return _ratio(_good(marks, out, slo) * PS_PER_S, length_ps) if slo.any else None


def _good(marks: Marks, out: bytearray, slo: Slo) -> int:
    """How many of those that finished met every goal that they had."""
    if not slo.classes:
        return marks.how_many(out, slo.met)
    own = sum(marks.how_many(marks.of_class(name, out), goals.met) for name, goals in slo.classes.items())
    return own + marks.how_many(marks.of_class(None, out), slo.met)


def _by_class(
    marks: Marks, inside: bytearray, out: bytearray, slo: Slo, length_ps: int
) -> dict[str, dict[str, Any]] | None:
    """What became of the requests of each class of service that has goals of its own; None where none has.

    `met_share` is that of all that arrived in the window: of them so many finished and met every goal.
    """
    if not slo.classes:
        return None
    found = {}
    for name, goals in slo.classes.items():
        arrived = marks.of_class(name, inside)
        done = marks.finished(arrived)
        good = marks.how_many(marks.of_class(name, out), goals.met)
        found[name] = {
            "arrived": sum(arrived),
            "finished": sum(done),
            "met_share": _ratio(marks.how_many(done, goals.met), sum(arrived)),
            "goodput_per_s": _ratio(good * PS_PER_S, length_ps),
            "ttft_s": spread(marks.ttft_ps(arrived)),
            "tpot_s": spread(marks.tpot_ps(done)),
            "e2e_s": spread(marks.e2e_ps(done)),
        }
    return found


def _free_ps(totals: Totals) -> int:
    """Integral of all free slots, those lost to shape included."""
    slots_ps = dict(zip(CLASSES, totals.slots_ps, strict=True))
    return slots_ps["free"] + slots_ps["external"] - totals.rounding_ps


def _allocated_ps(totals: Totals) -> int:
    """Integral of the slots that somebody holds."""
    slots_ps = dict(zip(CLASSES, totals.slots_ps, strict=True))
    return sum(totals.slots_ps) - slots_ps["free"] - slots_ps["cached"] - slots_ps["external"]


def pools(run: Run) -> list[dict[str, Any]]:
    """The pools of the run, keyed by replica, rank, tier and group."""
    _, _, totals = measured(run)
    pool = run.memory.pool_slots
    host = {
        "replica": 0,
        "rank": 0,
        "tier": "host",
        "group": 0,
        "tokens": run.host_slots,
        "blocks": None,
        "mean_share": {"used": _ratio(totals.host_ps, run.host_slots * totals.time_ps)},
        "peak_share": {"used": _ratio(totals.host_peak, run.host_slots)},
    }
    return [
        {
            "replica": 0,
            "rank": 0,
            "tier": "gpu",
            "group": 0,
            "tokens": pool or None,
            "blocks": None if run.block_size is None else pool // run.block_size,
            "mean_share": shares(totals.slots_ps, pool * totals.time_ps),
            "peak_share": shares(totals.peaks, pool),
        },
        *([host] if run.host_slots else []),
    ]


def shares(amounts: Seq[int], whole: int) -> dict[str, float | None]:
    """Each class as a fraction of `whole`; None for all when there was no time to measure."""
    return {name: _ratio(amount, whole) for name, amount in zip(CLASSES, amounts, strict=True)}


def spread(values_ps: "array[int] | array[float]") -> dict[str, float] | None:
    """Mean, percentiles (linear between the two nearest values) and maximum in seconds; None without values.

    May leave the array in order. Mutates.
    """
    if not values_ps:
        return None
    values = _in_order(values_ps)
    return {
        "mean": sum(values) / len(values) / PS_PER_S,
        **{f"p{p}": _percentile(values, p) / PS_PER_S for p in PERCENTILES},
        "max": values[-1] / PS_PER_S,
    }


_MANY = 1 << 16
"""From so many values on, a sorted list of them would take more memory than numpy, and more time than to load it."""


def _in_order(values: "array[int] | array[float]") -> Seq[float]:
    if len(values) < _MANY:
        return sorted(values)
    import numpy as np

    np.frombuffer(values, dtype=values.typecode).sort()
    return values


def _percentile(ordered: Seq[float], percent: int) -> float:
    rank, rest = divmod(percent * (len(ordered) - 1), 100)
    low = ordered[rank]
    return low if not rest else low + (ordered[rank + 1] - low) * rest / 100


def _ratio(amount: int, whole: int) -> float | None:
    return amount / whole if whole else None
