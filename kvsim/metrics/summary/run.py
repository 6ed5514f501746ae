"""What a summary is made of: the records of one run, what is asked of them, and the time that is measured."""

from collections.abc import Mapping
from collections.abc import Sequence as Seq
from dataclasses import dataclass, field
from typing import Protocol

from kvsim.metrics.histogram import DurationHistogram
from kvsim.metrics.memory import AddressLog
from kvsim.metrics.prefix import Reuse
from kvsim.metrics.requests import Marks
from kvsim.metrics.requests.refusals import Refusals
from kvsim.metrics.window import Totals
from kvsim.step import Upkeep

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
