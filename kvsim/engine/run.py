"""One run: requests come in, a replica serves them, everything is recorded."""

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from statistics import median_low

from simpy import Event

from kvsim.content import Layers
from kvsim.engine.arrivals import After, Feedback
from kvsim.engine.check import Auditor
from kvsim.engine.clock import ARRIVAL, HORIZON, At, Clock
from kvsim.engine.recording import Recording
from kvsim.engine.replica import OnEnd, Over, Replica, first_need
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
    """What a run leaves behind, in picoseconds and slots."""

    recording: Recording
    end_ps: int
    last_arrival_ps: int


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
) -> RunLog:
    """Serve `requests` (in order of arrival) until all have ended, or up to `horizon_ps`.

    `window` and `warmup_ps` say what is measured (see `MemoryRecorder`). Who comes while
    `max_queued` sequences wait is rejected. `stepwise` turns leaps off. `check` audits
    everything after every step. `addresses` records where every slot goes (`RunLog.recording.addresses`), step by step
    as with `stepwise`. `layers` says which layer of sharing contents belong to. `kv_events` keeps what happens in a
    cache, event by event. `on_end` is called with the record of each request that ends, and `after` closes the loop:
    it gives those that come because of it, beside the `requests` that come by themselves. `over` is asked behind that
    which requests have own tokens that nobody will come with any more, so that a cache can forget them. With `pieces`
    the records are handed over while the run goes on, and kept nowhere else. Raises RunError when the run makes no
    progress, CheckError when an invariant breaks, InputError when the requests are not in order of arrival.
    """
    # A stop that the clock can hold comes before whatever it cannot hold.
    stops = horizon_ps is not None and horizon_ps <= LAST_PS
    stream = _coming(requests, stops)
    first = list(islice(stream, REFERENCE_REQUESTS))
    known = [request for request in first if request is not None]
    if not known:
        where = " within the 64-bit clock" if first else ""
        raise InputError(f"the workload has no requests{where}; a run needs at least one")
    allocator = scheduler.allocator
    reference_need = median_low(first_need(scheduler, entering(request, max_model_len)) for request in known)
    clock = Clock()
    recording = Recording(
        allocator,
        window=window,
        warmup_ps=warmup_ps,
        check=check,
        addresses=addresses,
        clock=clock,
        layers=layers,
        kv_events=kv_events,
        pieces=pieces,
    )
    coming = chain(first, stream)
    feedback = None if after is None else Feedback(clock, coming, after, stops=stops)
    replica = Replica(
        clock,
        scheduler,
        timing,
        recording,
        max_model_len=max_model_len,
        reference_need=reference_need,
        leaps=not (stepwise or addresses),
        horizon_ps=horizon_ps,
        max_queued=max_queued,
        auditor=Auditor() if check else None,
        on_end=on_end if feedback is None else _both(feedback.ended, on_end),
        over=over,
    )
    if feedback is None:
        _Arrivals(clock, coming, replica)
    else:
        feedback.begin(replica)
    if warmup_ps:
        At(clock, warmup_ps, ARRIVAL, lambda _: recording.memory.open(clock.now_ps))
    with _collector_at_rest():
        if horizon_ps is None:
            clock.run()
        else:
            clock.run(until=At(clock, horizon_ps, HORIZON, lambda _: replica.halt()))
    if replica.live:
        raise RunError(
            f"{len(replica.live)} requests are left although nothing more can happen: a lost wake-up (a bug)"
        )
    recording.over(replica.end_ps)
    return RunLog(recording, replica.end_ps, recording.requests.last_arrival_ps)


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


class _Arrivals:
    """Brings the requests in, with one event for each moment; with the last one the measured window closes."""

    def __init__(self, clock: Clock, requests: Iterator[Request | None], replica: Replica) -> None:
        self._clock = clock
        self._requests = requests
        self._replica = replica
        self._next: Request | None = None
        At(clock, 0, ARRIVAL, self._arrive)

    def _arrive(self, event: Event) -> None:
        """The next one is here, and all who come with it."""
        clock, submit = self._clock, self._replica.submit
        if self._next is not None:
            submit(self._next)
        for request in self._requests:
            if request is None:
                return
            delay = request.arrival_ps - clock.now_ps
            if delay > 0:
                self._next = request
                At(clock, delay, ARRIVAL, self._arrive)
                return
            if delay < 0:
                raise InputError(
                    f"request {request.id} arrives at {request.arrival_ps} ps, before the one ahead of it; "
                    f"requests must come in order of arrival"
                )
            submit(request)
        self._replica.no_more()
        self._replica.recording.memory.close(clock.now_ps)
