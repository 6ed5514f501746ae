"""Recorded calls on the move: what comes by itself, and what comes because another has ended or was sent."""

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush

from kvsim.request import PS_PER_S, Request
from kvsim.workload.replayed.calls import Call, CallGraph
from kvsim.workload.replayed.waits import ThinkBounds, Wait
from kvsim.workload.sessions.drive import FAILED, FINISHED
from kvsim.workload.sessions.laws import ClientLoop, OnFailure


class Sending:
    """A call that has its time; a `drive.Player`."""

    __slots__ = ("attempt", "call", "next_id", "patience_ps", "tags")

    def __init__(
        self, call: Call, next_id: int, tags: int | None, patience_ps: int | None, *, attempt: int = 0
    ) -> None:
        self.call = call
        self.next_id = next_id
        self.tags = tags
        self.patience_ps = patience_ps
        self.attempt = attempt

    @property
    def session(self) -> int:
        """See `drive.Player`."""
        return self.call.session

    def again(self) -> "Sending":
        """The next attempt at it."""
        return Sending(self.call, self.next_id + 1, self.tags, self.patience_ps, attempt=self.attempt + 1)

    def request(self, arrival_ps: int, step: int) -> Request:
        """See `drive.Player`. A further attempt asks for the very same prompt."""
        call = self.call
        return Request(
            self.next_id,
            arrival_ps,
            call.prompt_tokens,
            call.output_tokens,
            patience_ps=self.patience_ps,
            priority=call.priority,
            tenant=call.tenant,
            content=call.content,
            session=call.session,
            turn=call.turn,
            slo_class=call.slo_class,
            answer=call.answer,
        )


Coming = tuple[int, Sending]


class RecordedLoop:
    """The calls of `graph` in one run.

    Groups begin at `begin_ps` (a time for each, in their order), or one after the other at each of so many `clients`:
    client k has groups k, k + clients and so on, and pauses before each as `rests_ps` has it. `closed`: a call comes
    when all that it waits for is done; else at its recorded time, multiplied by the ratio `stretch`. `kinds` has the
    kind of client of each group, `patiences_ps` how long a client waits for each call; None: as recorded.
    """

    def __init__(
        self,
        graph: CallGraph,
        *,
        closed: bool,
        begin_ps: Sequence[int] = (),
        clients: ClientLoop | None = None,
        rests_ps: Sequence[int] | None = None,
        on_failure: OnFailure | None = None,
        bounds: ThinkBounds | None = None,
        kinds: Sequence[int] | None = None,
        patiences_ps: Sequence[int | None] | None = None,
        stretch: tuple[int, int] = (1, 1),
    ) -> None:
        self._graph = graph
        self._closed = closed
        self._begin_ps = begin_ps
        self._clients = clients
        self._rests_ps = rests_ps
        self._rule = on_failure or OnFailure()
        self._bounds = bounds or ThinkBounds()
        self._kinds = kinds
        self._patiences_ps = patiences_ps
        self._stretch = stretch
        self.attempts = attempts_of(self._rule)
        self.step = 1
        """Ids of the attempts at one call follow each other."""
        calls = graph.calls
        self._missing = [len(call.waits) for call in calls]
        self._ready_ps = [0] * len(calls)
        """The earliest time at which each may come, by what is done so far."""
        self._start_ps = [0] * len(calls)
        self._group = [0] * len(calls)
        self._left = [len(group.calls) for group in graph.groups]
        """Calls of each group that are not over."""
        self._over = bytearray(len(calls))
        """Calls that are over, or will never come."""
        for number, group in enumerate(graph.groups):
            for call in group.calls:
                self._group[call] = number

    def starts(self) -> Iterator[Coming]:
        """See `drive.Loop`."""
        if self._clients is not None:
            begins = self._first_of_clients(self._clients)
        else:
            begins = list(zip(self._begin_ps, range(len(self._graph.groups)), strict=True))
        begins.sort(reverse=True)
        coming: list[tuple[int, int, Sending]] = []
        while begins or coming:
            # A group's calls come at its start at the earliest.
            while begins and (not coming or begins[-1][0] <= coming[0][0]):
                time_ps, group = begins.pop()
                for at_ps, sending in self._begin(group, time_ps):
                    heappush(coming, (at_ps, sending.next_id, sending))
            at_ps, _, sending = heappop(coming)
            yield at_ps, sending

    def follow(self, sending: Sending, request: Request, at_ps: int, end: str, generated_tokens: int) -> list[Coming]:
        """See `drive.Loop`."""
        if not self._closed or (end != FINISHED and end not in FAILED):
            return []
        call, rule = sending.call, self._rule
        if end in FAILED:
            back_off_ps = round(rule.back_off_s * PS_PER_S) << sending.attempt
            if rule.then == "retry" and sending.attempt < rule.retries:
                return [(at_ps + back_off_ps, sending.again())]
            at_ps += back_off_ps
            if rule.then != "go-on":
                return self._fails(call, at_ps)
        found: list[Coming] = []
        self._is_over(call, at_ps, found)
        for number, wait in call.followers:
            if wait.trigger != "start":
                self._done(number, self._due_ps(call, wait, at_ps), found)
        return found

    def _due_ps(self, call: Call, wait: Wait, end_ps: int) -> int:
        """When a call may come that waits for the end of `call`."""
        if wait.trigger == "paced":
            pause_ps = max(0, self._start_ps[call.number] + wait.delay_ps - end_ps)
        else:
            pause_ps = wait.delay_ps
        return end_ps + (self._bounds.between(pause_ps) if wait.relation == "turn" else pause_ps)

    def _done(self, number: int, due_ps: int, found: list[Coming]) -> None:
        """Something that a call waited for is done: it may come from `due_ps` on. Mutates."""
        self._ready_ps[number] = max(self._ready_ps[number], due_ps)
        self._missing[number] -= 1
        if not self._missing[number] and not self._over[number]:
            self._send(number, self._ready_ps[number], found)

    def _send(self, number: int, time_ps: int, found: list[Coming]) -> None:
        """A call has its time, and so have those that only waited for its sending. Mutates."""
        waiting = [(number, time_ps)]
        while waiting:
            number, time_ps = waiting.pop()
            call = self._graph.calls[number]
            self._start_ps[number] = time_ps
            kind = None if self._kinds is None else self._kinds[self._group[number]]
            patience_ps = call.patience_ps if self._patiences_ps is None else self._patiences_ps[number]
            found.append((time_ps, Sending(call, number * self.attempts, kind, patience_ps)))
            if not self._closed:
                continue
            for after, wait in call.followers:
                if wait.trigger == "start":
                    self._ready_ps[after] = max(self._ready_ps[after], time_ps + wait.delay_ps)
                    self._missing[after] -= 1
                    if not self._missing[after] and not self._over[after]:
                        waiting.append((after, self._ready_ps[after]))

    def _begin(self, group: int, time_ps: int) -> list[Coming]:
        """A group begins: calls that wait for nobody come at their times from its start. Mutates."""
        found: list[Coming] = []
        numerator, denominator = self._stretch
        for number in self._graph.groups[group].calls:
            call = self._graph.calls[number]
            if not self._closed or not call.waits:
                self._send(number, time_ps + (call.time_ps or 0) * numerator // denominator, found)
        return found

    def _fails(self, failed: Call, at_ps: int) -> list[Coming]:
        """A call came to nothing, and with it its session; who waited for that goes on at `at_ps`. Mutates."""
        found: list[Coming] = []
        waiting = [failed]
        while waiting:
            call = waiting.pop()
            if self._over[call.number]:
                continue
            self._is_over(call, at_ps, found)
            for number, wait in call.followers:
                if call is failed and wait.trigger == "start":
                    continue  # It was sent.
                if wait.relation == "join":
                    self._done(number, at_ps, found)
                else:
                    # Its session goes no further, and what it would have started never comes.
                    waiting.append(self._graph.calls[number])
        return found

    def _is_over(self, call: Call, at_ps: int, found: list[Coming]) -> None:
        """A call is over, or will never come; with the last one of its group the client goes on. Mutates."""
        self._over[call.number] = 1
        group = self._group[call.number]
        self._left[group] -= 1
        if self._clients is not None and not self._left[group]:
            following = group + self._clients.clients
            if following < len(self._graph.groups):
                rest_ps = 0 if self._rests_ps is None else self._rests_ps[following]
                found += self._begin(following, at_ps + rest_ps)

    def _first_of_clients(self, loop: ClientLoop) -> list[tuple[int, int]]:
        ramp_ps = round(loop.ramp_s * PS_PER_S)
        clients = min(loop.clients, len(self._graph.groups))
        return [(client * ramp_ps // loop.clients, client) for client in range(clients)]


def attempts_of(rule: OnFailure) -> int:
    """How often a call is tried at most."""
    return rule.retries + 1 if rule.then == "retry" else 1
