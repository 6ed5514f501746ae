"""Round robin: each request to the replica after that of the one before it."""

from collections.abc import Sequence

from kvsim.engine.fleet.interface import Member
from kvsim.request import Request


class RoundRobin:
    """By the number of the request, so that no two routers of one stream can disagree."""

    stateless = True
    follows_caches = False

    def choose(self, request: Request, members: Sequence[Member]) -> Member:
        """See `Router`."""
        return members[request.id % len(members)]
