"""Session affinity: all turns of a session to one replica, so that they find what the turns before them left."""

from collections.abc import Sequence

from kvsim.engine.fleet.interface import Member
from kvsim.engine.fleet.routers.draws import bucket, draw
from kvsim.request import Request


class SessionAffinity:
    """By a consistent hash of the session; a request that stands alone goes anywhere."""

    stateless = True
    follows_caches = False

    def __init__(self, *, seed: int = 0) -> None:
        self._seed = seed

    def choose(self, request: Request, members: Sequence[Member]) -> Member:
        """See `Router`."""
        if request.session is None:
            number = draw(self._seed, "router", request.id)
        else:
            number = draw(self._seed, "router session", request.session)
        return members[bucket(number, len(members))]
