"""Sessions one after the other: which ones there are, and what follows a turn of one, in loops open and closed."""

from collections.abc import Iterator
from dataclasses import dataclass

from kvsim.content import Layers
from kvsim.request import PS_PER_S, Request
from kvsim.workload.arguments import check_whole
from kvsim.workload.arrivals import ArrivalProcess
from kvsim.workload.clients.limits import Patience
from kvsim.workload.clients.tags import TagMix
from kvsim.workload.layers import Shared, Stack
from kvsim.workload.sessions.draws import Blocks, OwnStream, Source
from kvsim.workload.sessions.drive import FAILED, FINISHED, LoopTraffic
from kvsim.workload.sessions.laws import ClientLoop, SessionLaws
from kvsim.workload.sessions.plan import Draws, numbered
from kvsim.workload.sessions.play import Play
from kvsim.workload.streams import Streams

Coming = tuple[int, Play]
"""(arrival in picoseconds, the session whose next turn comes then)"""


@dataclass(frozen=True, kw_only=True)
class Sources:
    """What a run's sessions are made from, beside their laws."""

    streams: Streams
    layers: tuple[Shared, ...] = ()
    samples: int = 1
    cancel: Patience | None = None
    mix: TagMix | None = None


class SessionLoop:
    """The sessions of one run. Sessions begin by `arrivals`, or in a loop of `clients`; `requests` ends them.

    Everything about a session is drawn before it begins, from streams keyed by its number or its client's; ids follow
    from the plans too. So the same request has the same id, lengths and contents whatever serves it.
    """

    def __init__(
        self,
        laws: SessionLaws,
        sources: Sources,
        *,
        arrivals: ArrivalProcess | None = None,
        clients: ClientLoop | None = None,
        requests: int | None = None,
    ) -> None:
        self.laws = laws
        self._sources = sources
        self._arrivals = arrivals
        self._clients = clients
        self._requests = requests
        self._stack = Stack(sources.layers, sources.streams)
        self._blocks = Blocks(sources.streams)
        self._attempts = laws.on_failure.retries + 1 if laws.on_failure.then == "retry" else 1
        self.step = 1 if clients is None else clients.clients
        """Between the ids of two requests of one client."""
        self._own: dict[int, _Client] = {}

    def starts(self) -> Iterator[Coming]:
        """Sessions as they begin by themselves, in order of time; of a loop of clients each one's first."""
        if self._clients is not None:
            ramp_ps = round(self._clients.ramp_s * PS_PER_S)
            for client in range(self._clients.clients):
                if play := self._next_of(client):
                    yield client * ramp_ps // self._clients.clients, play
            return
        assert self._arrivals is not None
        sources, left, first = self._sources, self._requests, 0
        times_ps = self._arrivals.arrivals_ps(sources.streams.generator("arrivals"))
        for number, time_ps in enumerate(times_ps):
            if left is not None and left < 1:
                return
            plan = self._draws(number, self._blocks.of(number)).plan(number, left)
            turns = numbered(plan, first, 1, self._attempts)
            first += turns * self._attempts
            left = None if left is None else left - turns
            yield time_ps, Play(plan, self.laws.history)

    def follow(self, play: Play, request: Request, at_ps: int, end: str, generated_tokens: int) -> list[Coming]:
        """What comes next, once a turn has ended at `at_ps` (or, in an open loop, has arrived). Mutates the session."""
        turn, rule = play.turn, self.laws.on_failure
        if end in FAILED:
            back_off_ps = round(rule.back_off_s * PS_PER_S) << play.attempt
            if rule.then == "retry" and play.attempt < rule.retries:
                play.attempt += 1
                return [(at_ps + back_off_ps, play)]
            if rule.then != "go-on":
                return self._over(play, at_ps + back_off_ps)
            at_ps += back_off_ps
            if not generated_tokens:
                play.next_turn()
                return self._next(play, at_ps)
        elif end != FINISHED:
            return []
        play.answered(request, generated_tokens)
        if called := play.agents_of(turn):
            return [(at_ps + agent.turn.pause_ps, agent) for agent in called]
        return self._next(play, at_ps)

    def _next(self, play: Play, at_ps: int) -> list[Coming]:
        return self._over(play, at_ps) if play.over else [(at_ps + play.turn.pause_ps, play)]

    def _over(self, play: Play, at_ps: int) -> list[Coming]:
        """A session is over: whoever waited for it goes on."""
        caller = play.caller
        if caller is not None:
            return self._next(caller, at_ps) if caller.done(play) else []
        if self._clients is None:
            return []
        following = self._next_of(play.client)
        return [] if following is None else [(at_ps + following.turn.pause_ps, following)]

    def _next_of(self, client: int) -> Play | None:
        """The next session of a client; None once it has sent its part of the requests."""
        if client not in self._own:
            quota = None if self._requests is None else (self._requests - client + self.step - 1) // self.step
            self._own[client] = _Client(self._draws(client, OwnStream(self._sources.streams, client)), quota)
        own = self._own[client]
        if own.left is not None and own.left < 1:
            return None
        plan = own.draws.plan(client + self.step * own.sessions, own.left)
        own.sessions += 1
        turns = numbered(plan, client + self.step * self._attempts * own.planned, self.step, self._attempts)
        own.planned += turns
        own.left = None if own.left is None else own.left - turns
        return Play(plan, self.laws.history, client=client)

    def _draws(self, member: int, source: Source) -> Draws:
        sources = self._sources
        return Draws(
            self.laws, self._stack, source, member, samples=sources.samples, cancel=sources.cancel, mix=sources.mix
        )


@dataclass(slots=True)
class _Client:
    """What one client of a loop still has to send."""

    draws: Draws
    left: int | None
    sessions: int = 0
    planned: int = 0


class SessionTraffic(LoopTraffic):
    """Sessions that begin by `arrivals`, or one after the other at each of so many `clients`.

    `closed`: a further turn comes when the engine is done with the one before; else it has its time beforehand. A loop
    of clients is closed. `requests` is how many there are in all, as the sessions were planned; without it they do
    not end. ValueError on arguments that do not go together.
    """

    def __init__(
        self,
        laws: SessionLaws,
        *,
        arrivals: ArrivalProcess | None = None,
        clients: ClientLoop | None = None,
        closed: bool = False,
        requests: int | None = None,
    ) -> None:
        if (arrivals is None) == (clients is None):
            raise ValueError("arrivals: sessions begin either by arrivals or in a loop of clients; give one of them")
        if requests is not None:
            check_whole("requests", requests, 1)
        self.closed = closed or clients is not None
        self._laws = laws
        self._arrivals = arrivals
        self._clients = clients
        self._requests = requests

    def loop(self, sources: Sources) -> SessionLoop:
        """The sessions of one run, from the beginning."""
        return SessionLoop(self._laws, sources, arrivals=self._arrivals, clients=self._clients, requests=self._requests)

    def layers(self, shared: Layers) -> Layers:
        """Whatever is no shared text is one session's."""
        return shared

    def describe(self) -> dict[str, object]:
        """The report for the run folder: how sessions begin and what they are drawn from."""
        begin: dict[str, object] = {"arrivals": None, "rate_per_s": None, "clients": None}
        if self._arrivals is not None:
            begin |= {"arrivals": self._arrivals.describe(), "rate_per_s": self._arrivals.rate}
        if self._clients is not None:
            begin["clients"] = {"clients": self._clients.clients, "ramp_s": self._clients.ramp_s}
        return {
            "source": "sessions",
            "loop": "closed" if self.closed else "open",
            **begin,
            **self._laws.describe(),
            "requests_asked": self._requests,
            "prefix_identity": "synthesised",
        }
