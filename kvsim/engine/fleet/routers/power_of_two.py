"""Power of two choices: of two replicas drawn at random, the one with fewer requests."""

from collections.abc import Sequence

from kvsim.engine.fleet.interface import Member
from kvsim.engine.fleet.routers.draws import BITS, draw
from kvsim.request import Request


class PowerOfTwo:
    """Two that differ, wherever there are two; of equal ones the first drawn."""

    stateless = False
    follows_caches = False

    def __init__(self, *, seed: int = 0) -> None:
        self._seed = seed

    def choose(self, request: Request, members: Sequence[Member]) -> Member:
        """See `Router`."""
        count = len(members)
        one = draw(self._seed, "router", request.id) * count >> BITS
        if count == 1:
            return members[one]
        other = draw(self._seed, "router's second", request.id) * (count - 1) >> BITS
        first, second = members[one], members[other + (other >= one)]
        return second if second.requests < first.requests else first
