"""Least requests: to the replica where the fewest wait or run."""

from collections.abc import Sequence

from kvsim.engine.fleet.interface import Member
from kvsim.engine.fleet.routers.least import Least, requests
from kvsim.request import Request


class LeastRequests:
    """Joins the shortest queue, those in service included."""

    stateless = False
    follows_caches = False

    def __init__(self) -> None:
        self._least = Least(requests)

    def choose(self, request: Request, members: Sequence[Member]) -> Member:
        """See `Router`."""
        return self._least.of(members)
