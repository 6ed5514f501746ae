"""Random: each request to any replica, all equally likely."""

from collections.abc import Sequence

from kvsim.engine.fleet.interface import Member
from kvsim.engine.fleet.routers.draws import BITS, draw
from kvsim.request import Request


class Random:
    """A draw of its own for each request."""

    stateless = True
    follows_caches = False

    def __init__(self, *, seed: int = 0) -> None:
        self._seed = seed

    def choose(self, request: Request, members: Sequence[Member]) -> Member:
        """See `Router`."""
        return members[draw(self._seed, "router", request.id) * len(members) >> BITS]
