"""Round robin: each request to the replica after that of the one before it."""

from collections.abc import Sequence

from kvsim.engine.fleet.interface import Member
from kvsim.request import Request


class RoundRobin:
    """In the order in which requests come, which is not that of their numbers where sessions are under way."""

    stateless = True
    follows_caches = False

    def __init__(self) -> None:
        self._last = -1

    def choose(self, request: Request, members: Sequence[Member]) -> Member:
        """See `Router`."""
        self._last = (self._last + 1) % len(members)
        return members[self._last]
