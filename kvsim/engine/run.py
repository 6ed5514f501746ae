"""One run: requests come in, a replica serves them, everything is recorded."""

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from statistics import median_low

from simpy import Event

from kvsim.content import Layers
from kvsim.engine.arrivals import After, Arrivals, Door, Feedback
from kvsim.engine.check import Auditor
from kvsim.engine.clock import ARRIVAL, HORIZON, At, Clock
from kvsim.engine.flushes import Flushes
from kvsim.engine.live import OnEnd, Over, first_need
from kvsim.engine.prefixes import Follower
from kvsim.engine.recording import Recording
from kvsim.engine.replica import Replica
from kvsim.errors import InputError, PastClockError, RunError
from kvsim.metrics.requests import Ended, entering
from kvsim.metrics.tables import Pieces
from kvsim.request import Request
from kvsim.scheduling.interface import Scheduler
from kvsim.timing.interface import StepTiming
from kvsim.workload.arrivals import LAST_PS

REFERENCE_REQUESTS = 1000
"""Holes are judged by the median of so many first requests while nothing waits (design: the accounting identity)."""


@dataclass(slots=True)
class RunLog:
    """What a run of one replica leaves behind, in picoseconds and slots."""

    recording: Recording
    end_ps: int
    """When the last thing happened."""
    last_arrival_ps: int
    """Of whatever came to the run, or to the fleet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What holds for a run, and for every replica of a fleet; see `simulate`."""

    max_model_len: int
    window: str = "auto"
    warmup_ps: int = 0
    horizon_ps: int | None = None
    max_queued: int | None = None
    stepwise: bool = False
    check: bool = False
    addresses: bool = False
    layers: Layers | None = None
    kv_events: bool = False
    warm: Sequence[Request] = ()
    """What every cache has served before the run, in order."""
    flushes: Callable[[], Flushes] | None = None
    """Makes who empties the cache of one replica; None: nobody does."""
    slo_classes: Sequence[str] = ()


def simulate(
    requests: Iterable[Request],
    scheduler: Scheduler,
    timing: StepTiming,
    *,
    max_model_len: int,
    window: str = "auto",
    warmup_ps: int = 0,
    horizon_ps: int | None = None,
    max_queued: int | None = None,
    stepwise: bool = False,
    check: bool = False,
    addresses: bool = False,
    layers: Layers | None = None,
    kv_events: bool = False,
    on_end: OnEnd | None = None,
    after: After | None = None,
    over: Over | None = None,
    pieces: Pieces | None = None,
    warm: Iterable[Request] = (),
    flushes: Callable[[], Flushes] | None = None,
    slo_classes: Sequence[str] = (),
) -> RunLog:
    """Serve `requests` (in order of arrival) until all have ended, or up to `horizon_ps`.

    `window` and `warmup_ps` say what is measured (see `MemoryRecorder`). Who comes while
    `max_queued` sequences wait is rejected. `stepwise` turns leaps off. `check` audits
    everything after every step. `addresses` records where every slot goes (`RunLog.recording.addresses`), step by step
    as with `stepwise`. `layers` says which layer of sharing contents belong to. `kv_events` keeps what happens in a
    cache, event by event. `on_end` is called with the record of each request that ends, and `after` closes the loop:
    it gives those that come because of it, beside the `requests` that come by themselves. `over` is asked behind that
    which requests have own tokens that nobody will come with any more, so that a cache can forget them. With `pieces`
    the records are handed over while the run goes on, and kept nowhere else. The prompts and outputs of the `warm`
    requests, which do not arrive, are cached from the start, those of the last as if used last; what `flushes` makes
    empties the cache. `slo_classes` are told apart in the summary. Raises RunError when the run makes no progress,
    CheckError when an invariant breaks, InputError when the requests are not in order of arrival.
    """
    conditions = Conditions(
        max_model_len=max_model_len,
        window=window,
        warmup_ps=warmup_ps,
        horizon_ps=horizon_ps,
        max_queued=max_queued,
        stepwise=stepwise,
        check=check,
        addresses=addresses,
        layers=layers,
        kv_events=kv_events,
        warm=tuple(warm),
        flushes=flushes,
        slo_classes=slo_classes,
    )
    return simulate_under(conditions, requests, scheduler, timing, on_end=on_end, after=after, over=over, pieces=pieces)


def simulate_under(
    conditions: Conditions,
    requests: Iterable[Request],
    scheduler: Scheduler,
    timing: StepTiming,
    *,
    on_end: OnEnd | None = None,
    after: After | None = None,
    over: Over | None = None,
    pieces: Pieces | None = None,
) -> RunLog:
    """See `simulate`, with what holds in one piece."""
    world = World(requests, conditions, after, on_end, over)
    replica = world.replica(scheduler, timing, pieces=pieces)
    world.serve(replica, [replica])
    replica.recording.over(replica.end_ps)
    return RunLog(replica.recording, replica.end_ps, replica.recording.requests.last_arrival_ps)


class World:
    """A clock, what comes, and what holds."""

    def __init__(
        self,
        requests: Iterable[Request],
        conditions: Conditions,
        after: After | None,
        on_end: OnEnd | None,
        over: Over | None = None,
    ) -> None:
        self._conditions = conditions
        # A stop that the clock can hold comes before whatever it cannot hold.
        stops = conditions.horizon_ps is not None and conditions.horizon_ps <= LAST_PS
        stream = _coming(requests, stops)
        first = list(islice(stream, REFERENCE_REQUESTS))
        self._known = [request for request in first if request is not None]
        if not self._known:
            where = " within the 64-bit clock" if first else ""
            raise InputError(f"the workload has no requests{where}; a run needs at least one")
        self._need: int | None = None
        self.clock = Clock()
        self._stream = chain(first, stream)
        self._feedback = None if after is None else Feedback(self.clock, self._stream, after, stops=stops)
        self._on_end = on_end if self._feedback is None else _both(self._feedback.ended, on_end)
        self._over = over

    def replica(
        self,
        scheduler: Scheduler,
        timing: StepTiming,
        *,
        number: int = 0,
        pieces: Pieces | None = None,
        follower: Follower | None = None,
    ) -> Replica:
        """A replica on this clock; `follower` is told what its cache stores and evicts."""
        given, allocator = self._conditions, scheduler.allocator
        recording = Recording(
            allocator,
            window=given.window,
            warmup_ps=given.warmup_ps,
            check=given.check,
            addresses=given.addresses,
            clock=self.clock,
            layers=given.layers,
            kv_events=given.kv_events,
            follower=follower,
            pieces=pieces,
            slo_classes=given.slo_classes,
            fitted=timing.fitted,
        )
        return Replica(
            self.clock,
            scheduler,
            timing,
            recording,
            max_model_len=given.max_model_len,
            reference_need=self._reference_need(scheduler),
            # What a leap evicts is told when it is over, and whoever follows it must know at once.
            leaps=not (given.stepwise or given.addresses or follower is not None),
            horizon_ps=given.horizon_ps,
            max_queued=given.max_queued,
            auditor=Auditor() if given.check else None,
            on_end=self._on_end,
            over=self._over,
            number=number,
        )

    def _reference_need(self, scheduler: Scheduler) -> int:
        """By what holes are judged while nothing waits; worked out once, as the replicas of a world are alike."""
        if self._need is None:
            longest = self._conditions.max_model_len
            self._need = median_low(first_need(scheduler, entering(request, longest)) for request in self._known)
        return self._need

    def serve(self, door: Door, replicas: Sequence[Replica]) -> None:
        """Let requests come in at `door` until all that `replicas` got have ended, or up to the horizon."""
        clock, given = self.clock, self._conditions

        def open_windows(_: Event) -> None:
            for replica in replicas:
                replica.recording.memory.open(clock.now_ps)

        def halt(_: Event) -> None:
            for replica in replicas:
                replica.halt()

        if self._feedback is None:
            Arrivals(clock, self._stream, door)
        else:
            self._feedback.begin(door)
        flushes = []
        for replica in replicas:
            _warm(replica, given.warm)
            if given.flushes is not None:
                flushes.append(given.flushes())
                flushes[-1].begin(replica)
        if given.warmup_ps:
            At(clock, given.warmup_ps, ARRIVAL, open_windows)
        with _collector_at_rest():
            if given.horizon_ps is None:
                clock.run()
            else:
                clock.run(until=At(clock, given.horizon_ps, HORIZON, halt))
        left = sum(len(replica.live) for replica in replicas)
        if left:
            raise RunError(f"{left} requests are left although nothing more can happen: a lost wake-up (a bug)")
        for one in flushes:
            one.over()


def _warm(replica: Replica, requests: Iterable[Request]) -> None:
    """Fill the cache with what these would have left behind, had they been served one after the other."""
    allocator, served = replica.allocator, False
    for request in requests:
        journey = entering(request, replica.max_model_len)
        if request.prompt_tokens < replica.max_model_len:
            allocator.warm(journey.sequence.contents, request.prompt_tokens, journey.written_in_all)
            served = True
    if served:
        replica.recording.begins(allocator.usage().cached)


@contextmanager
def _collector_at_rest() -> Iterator[None]:
    """No cyclic garbage collection: a run makes no rings of objects, and its records would be walked in vain."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _both(first: OnEnd, then: OnEnd | None) -> OnEnd:
    def call(record: Ended) -> None:
        first(record)
        if then is not None:
            then(record)

    return call


def _coming(requests: Iterable[Request], stops: bool) -> Iterator[Request | None]:
    """The requests; and None in place of all that the clock cannot hold, where the run stops before they come."""
    try:
        yield from requests
    except PastClockError:
        if not stops:
            raise
        yield None
