"""What nobody comes with any more is forgotten wherever it was: in a fleet's caches, and in its router's index."""

from collections.abc import Mapping, Sequence

from kvsim.content import own_stream
from kvsim.engine.fleet.caches import FleetCaches
from kvsim.engine.live import Over
from kvsim.engine.replica import Replica
from kvsim.metrics.requests import sequence_ids
from kvsim.request import Request


class Forgetting:
    """Knows which of `replicas` a session has been to, so that its end is told to these alone; changes no answer.

    `over` says, of a request that has ended, whose own tokens no later one holds. Memory grows with the sessions that
    are under way.
    """

    def __init__(self, over: Over, replicas: Mapping[int, Replica], caches: FleetCaches | None) -> None:
        self._over = over
        self._replicas = replicas
        self._caches = caches
        self._been: dict[int, set[int]] = {}
        """By session, the numbers of the replicas that it has been to."""

    def comes(self, request: Request, number: int) -> None:
        """A request is about to come to one of the replicas. Mutates."""
        if request.session is not None:
            self._been.setdefault(request.session, set()).add(number)

    def goes_elsewhere(self, request: Request) -> None:
        """A request comes to nobody here, and so nothing more of it will be heard. Mutates."""
        if request.session is not None:
            self.ended(request)

    def ended(self, request: Request) -> Sequence[int]:
        """See `Over`: what is left for the replica itself to forget. Mutates."""
        ids = list(self._over(request))
        if self._caches is not None:
            self._caches.forget([own_stream(one) for one in (*ids, *sequence_ids(request)[1:])])
        if request.session is None or not ids:
            return ids
        streams = [own_stream(one) for one in ids]
        for number in sorted(self._been.pop(request.session, ())):
            self._replicas[number].allocator.forget(streams)
        return ()
