"""How requests come in: by themselves, one after the other, or because others have ended (a closed loop)."""

from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush
from itertools import islice
from typing import Protocol

from simpy import Event

from kvsim.engine.clock import ARRIVAL, At, Clock
from kvsim.errors import InputError, PastClockError
from kvsim.metrics.requests import Ended
from kvsim.request import Request

After = Callable[[int, int, str, int], Iterable[Request]]
"""Called with the id of a request that has ended, when (picoseconds), how, and how many tokens it got; gives those that
come because of it, none of them before that moment."""

_IN_ORDER = "requests must come in order of arrival"


class Door(Protocol):
    """Where requests come in: a replica, or a fleet of them."""

    def submit(self, request: Request) -> None:
        """A request arrives now."""

    def no_more(self) -> None:
        """The last request that is known has come: the measured window closes here, unless there are more."""

    def more_come(self) -> None:
        """There are: one is known after all."""


class Arrivals:
    """Brings the requests in, with one event for each moment; with the last one the measured window closes."""

    def __init__(self, clock: Clock, requests: Iterator[Request | None], door: Door) -> None:
        self._clock = clock
        self._requests = requests
        self._door = door
        self._next: Request | None = None
        At(clock, 0, ARRIVAL, self._arrive)

    def _arrive(self, event: Event) -> None:
        """The next one is here, and all who come with it."""
        clock, submit = self._clock, self._door.submit
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
                    f"request {request.id} arrives at {request.arrival_ps} ps, before the one ahead of it; {_IN_ORDER}"
                )
            submit(request)
        self._door.no_more()


class Feedback:
    """Brings the requests of `stream` (in order of arrival) in, and those that `after` adds whenever one ends.

    At one moment they come in the order of their ids, whoever caused them. The measured window closes with each
    arrival after which no other is known, so that the last of these stands. `stops`: the run ends before whatever the
    clock cannot hold.
    """

    def __init__(self, clock: Clock, stream: Iterator[Request | None], after: After, *, stops: bool) -> None:
        self._clock = clock
        self._stream = stream
        self._after = after
        self._stops = stops
        self._known: list[tuple[int, int, Request]] = []
        self._stream_ps = -1
        """When the one comes that the stream gave last; the stream is always one ahead."""
        self._more = False
        """More would come, past the end of the clock."""
        self._next: Event | None = None
        self._next_ps = 0
        self._busy = False
        self._door: Door | None = None

    def begin(self, door: Door) -> None:
        """Let the first requests come."""
        self._door = door
        self._pull()
        self._arm()

    def ended(self, record: Ended) -> None:
        """A request has ended. Mutates."""
        door = self._door
        assert door is not None
        try:
            for request in self._after(record.id, record.end_ps, record.end, record.generated_tokens):
                self._know(request)
                door.more_come()
        except PastClockError:
            if not self._stops:
                raise
        if not self._busy:
            self._arm()

    def _pull(self) -> None:
        self._stream_ps = -1
        for request in islice(self._stream, 1):
            if request is None:
                self._more = True
            elif request.arrival_ps < self._clock.now_ps:
                raise InputError(f"request {request.id} arrives before the one ahead of it; {_IN_ORDER}")
            else:
                self._stream_ps = request.arrival_ps
                self._know(request)

    def _know(self, request: Request) -> None:
        # Ids differ, so that requests are never compared.
        heappush(self._known, (request.arrival_ps, request.id, request))

    def _arm(self) -> None:
        """See to it that the earliest request known comes in; an event for a later one has been overtaken."""
        if self._known and (self._next is None or self._known[0][0] < self._next_ps):
            self._next_ps = self._known[0][0]
            self._next = At(self._clock, self._next_ps - self._clock.now_ps, ARRIVAL, self._due)

    def _due(self, event: Event) -> None:
        if event is not self._next:
            return
        now, door = self._clock.now_ps, self._door
        assert door is not None
        while self._stream_ps == now:
            self._pull()
        self._busy = True
        while self._known and self._known[0][0] == now:
            door.submit(heappop(self._known)[2])
        self._busy, self._next = False, None
        if not self._known and not self._more:
            door.no_more()
        self._arm()
