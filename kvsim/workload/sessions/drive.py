"""Sessions on the move: by the clock, whatever the engine does, or by the answers that it gives."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from heapq import heappop, heappush
from typing import Any, Generic, Protocol, TypeVar

from kvsim.content import Layers
from kvsim.request import Request

FINISHED = "finished"
FAILED = ("rejected", "cancelled", "aborted")
"""Ends of a request that came to nothing."""


class Player(Protocol):
    """Whoever has a request coming: a session on its way, or one call of a recorded one."""

    @property
    def next_id(self) -> int:
        """The id of the request that comes next, unlike any other's."""

    @property
    def session(self) -> int:
        """The number of the session that it is of."""

    @property
    def tags(self) -> int | None:
        """Which kind of client it is from; None: what it carries was recorded with it."""

    def request(self, arrival_ps: int, step: int) -> Request:
        """The request that comes next; what its client adds to it is not there yet. Mutates the player at most."""


P = TypeVar("P", bound=Player)


class Loop(Protocol[P]):
    """Knows what comes by itself, and what follows a request. Requests are told apart by the ids of their players."""

    step: int
    """Between the ids of two requests of one client."""

    def starts(self) -> Iterator[tuple[int, P]]:
        """(arrival in picoseconds, player) of what comes by itself, in order of time."""

    def follow(
        self, player: P, request: Request, at_ps: int, end: str, generated_tokens: int
    ) -> Sequence[tuple[int, P]]:
        """What comes next, once a request has ended at `at_ps` (or, in an open loop, has arrived). Mutates."""


class LoopTraffic(ABC):
    """Traffic whose requests follow one another, drawn or recorded."""

    closed: bool
    """They come because others have ended; else by the clock."""
    told_answers: int = 0
    """Recorded calls whose answers are known."""

    @abstractmethod
    def loop(self, sources: Any) -> Loop[Any]:
        """What comes in one run, from the beginning; `sources` are a `loop.Sources`."""

    @abstractmethod
    def layers(self, shared: Layers) -> Layers:
        """Which layer of sharing each stream of the prompts belongs to; `shared` says that of the texts of layers."""

    @abstractmethod
    def describe(self) -> dict[str, object]:
        """What the run folder says of it: plain values, and no time or path of the machine."""


Dress = Callable[[Request, int | None], Request]
"""Adds to a request what its client says, by the kind of client (None: as recorded)."""


class UnderWay:
    """Sessions of which a turn is to come or has not ended yet, and the ids of those turns that came."""

    def __init__(self) -> None:
        self._turns: dict[int, int] = {}
        self._ids: dict[int, list[int]] = {}

    def to_come(self, session: int) -> None:
        """A turn is to come. Mutates."""
        self._turns[session] = self._turns.get(session, 0) + 1

    def came(self, session: int, id: int) -> None:
        """It has its id. Mutates."""
        self._ids.setdefault(session, []).append(id)

    def ended(self, session: int) -> Sequence[int]:
        """A turn has ended, and those that come because of it are known; all ids if the session is over. Mutates."""
        self._turns[session] -= 1
        if self._turns[session]:
            return ()
        del self._turns[session]
        return self._ids.pop(session)


def by_the_clock(loop: Loop[P], dress: Dress, under_way: UnderWay | None = None) -> Iterator[Request]:
    """The requests of all sessions in order of arrival.

    A further turn comes its pause after the arrival of the one before, and holds the answer that this one will have
    if nothing stops it. Memory grows with the sessions that are under way, not with the requests. `under_way` is told
    of every turn.
    """
    waiting: list[tuple[int, int, P]] = []
    starts = loop.starts()
    upcoming: tuple[int, P] | None = next(starts, None)
    while upcoming is not None or waiting:
        if upcoming is not None and (not waiting or upcoming[0] <= waiting[0][0]):
            _enter(waiting, upcoming, under_way)
            upcoming = next(starts, None)
            continue
        now_ps, _, player = heappop(waiting)
        request = dress(player.request(now_ps, loop.step), player.tags)
        limit = request.max_tokens
        answer = request.output_tokens if limit is None else min(request.output_tokens, limit)
        for coming in loop.follow(player, request, now_ps, FINISHED, answer):
            _enter(waiting, coming, under_way)
        if under_way is not None:
            under_way.came(player.session, request.id)
        yield request


def _enter(waiting: list[tuple[int, int, P]], coming: tuple[int, P], under_way: UnderWay | None) -> None:
    time_ps, player = coming
    if under_way is not None:
        under_way.to_come(player.session)
    # Ids differ, so that players are never compared.
    heappush(waiting, (time_ps, player.next_id, player))


class ByTheAnswers(Generic[P]):
    """The closed loop of one run; `dress` adds to a request what its client says, by the kind of client.

    `under_way` is told of every turn.
    """

    def __init__(self, loop: Loop[P], dress: Dress, under_way: UnderWay | None = None) -> None:
        self._loop = loop
        self._dress = dress
        self._under_way = under_way
        self._live: dict[int, tuple[P, Request]] = {}
        """Requests that have not ended, by id, with whoever sent them."""

    def starts(self) -> Iterator[Request]:
        """The first requests of sessions that begin by themselves, in order of arrival."""
        return (self._arrives(coming) for coming in self._loop.starts())

    def after(self, request_id: int, end_ps: int, end: str, generated_tokens: int) -> list[Request]:
        """What comes because a request has ended: none of it before `end_ps`. Each request ends once. Mutates."""
        player, request = self._live.pop(request_id)
        limit = request.output_tokens if request.max_tokens is None else min(request.output_tokens, request.max_tokens)
        # Of several samples the session goes on with the first; the count is of all.
        answer = min(limit, generated_tokens)
        return [self._arrives(coming) for coming in self._loop.follow(player, request, end_ps, end, answer)]

    def _arrives(self, coming: tuple[int, P]) -> Request:
        time_ps, player = coming
        request = self._dress(player.request(time_ps, self._loop.step), player.tags)
        self._live[request.id] = player, request
        if self._under_way is not None:
            self._under_way.to_come(player.session)
            self._under_way.came(player.session, request.id)
        return request
