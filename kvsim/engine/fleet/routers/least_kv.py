"""Least KV: to the replica whose live requests hold the fewest slots of its pool."""

from collections.abc import Sequence

from kvsim.engine.fleet.interface import Member
from kvsim.engine.fleet.routers.least import Least, held_slots
from kvsim.request import Request


class LeastKv:
    """By the gauge that engines publish (vLLM's `kv_cache_usage_perc`), of the step in progress.

    Requests that wait hold nothing, so that a burst that comes within one step all goes to one replica.
    """

    stateless = False
    follows_caches = False

    def __init__(self) -> None:
        self._least = Least(held_slots)

    def choose(self, request: Request, members: Sequence[Member]) -> Member:
        """See `Router`."""
        return self._least.of(members)
