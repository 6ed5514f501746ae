"""Sessions on the move: by the clock, whatever the engine does, or by the answers that it gives."""

from collections.abc import Callable, Iterator, Sequence
from heapq import heappop, heappush

from kvsim.request import Request
from kvsim.workload.sessions.loop import FINISHED, Coming, SessionLoop
from kvsim.workload.sessions.play import Play


class UnderWay:
    """Sessions of which a turn is to come or has not ended yet, and the ids of those turns that came."""

    def __init__(self) -> None:
        self._turns: dict[int, int] = {}
        self._ids: dict[int, list[int]] = {}

    def to_come(self, session: int) -> None:
        """A turn is to come. Mutates."""
        self._turns[session] = self._turns.get(session, 0) + 1

    def came(self, request: Request) -> None:
        """It has its id. Mutates."""
        assert request.session is not None
        self._ids.setdefault(request.session, []).append(request.id)

    def ended(self, session: int) -> Sequence[int]:
        """A turn has ended, and those that come because of it are known; all ids if the session is over. Mutates."""
        self._turns[session] -= 1
        if self._turns[session]:
            return ()
        del self._turns[session]
        return self._ids.pop(session)


def by_the_clock(
    loop: SessionLoop, dress: Callable[[Request, int], Request], under_way: UnderWay | None = None
) -> Iterator[Request]:
    """The requests of all sessions in order of arrival; `dress` adds what the client says, by the kind of client.

    A further turn comes its pause after the arrival of the one before, and holds the answer that this one will have
    if nothing stops it. Memory grows with the sessions that are under way, not with the requests. `under_way` is told
    of every turn.
    """
    waiting: list[tuple[int, int, Play]] = []
    starts = loop.starts()
    upcoming: Coming | None = next(starts, None)
    while upcoming is not None or waiting:
        if upcoming is not None and (not waiting or upcoming[0] <= waiting[0][0]):
            _enter(waiting, upcoming, under_way)
            upcoming = next(starts, None)
            continue
        now_ps, _, play = heappop(waiting)
        request = dress(play.request(now_ps, loop.step), play.plan.tags)
        limit = request.max_tokens
        answer = request.output_tokens if limit is None else min(request.output_tokens, limit)
        for coming in loop.follow(play, request, now_ps, FINISHED, answer):
            _enter(waiting, coming, under_way)
        if under_way is not None:
            under_way.came(request)
        yield request


def _enter(waiting: list[tuple[int, int, Play]], coming: Coming, under_way: UnderWay | None) -> None:
    time_ps, play = coming
    if under_way is not None:
        under_way.to_come(play.plan.number)
    # Ids differ, so that plays are never compared.
    heappush(waiting, (time_ps, play.plan.ids[play.place], play))


class ByTheAnswers:
    """The closed loop of one run; `dress` adds to a request what its client says, by the kind of client.

    `under_way` is told of every turn.
    """

    def __init__(
        self, loop: SessionLoop, dress: Callable[[Request, int], Request], under_way: UnderWay | None = None
    ) -> None:
        self._loop = loop
        self._dress = dress
        self._under_way = under_way
        self._live: dict[int, tuple[Play, Request]] = {}
        """Requests that have not ended, by id, with the session they are of."""

    def starts(self) -> Iterator[Request]:
        """The first requests of sessions that begin by themselves, in order of arrival."""
        return (self._arrives(coming) for coming in self._loop.starts())

    def after(self, request_id: int, end_ps: int, end: str, generated_tokens: int) -> list[Request]:
        """What comes because a request has ended: none of it before `end_ps`. Each request ends once. Mutates."""
        play, request = self._live.pop(request_id)
        limit = request.output_tokens if request.max_tokens is None else min(request.output_tokens, request.max_tokens)
        # Of several samples the session goes on with the first; the count is of all.
        answer = min(limit, generated_tokens)
        return [self._arrives(coming) for coming in self._loop.follow(play, request, end_ps, end, answer)]

    def _arrives(self, coming: Coming) -> Request:
        time_ps, play = coming
        request = self._dress(play.request(time_ps, self._loop.step), play.plan.tags)
        self._live[request.id] = play, request
        if self._under_way is not None:
            self._under_way.to_come(play.plan.number)
            self._under_way.came(request)
        return request
