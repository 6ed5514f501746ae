"""Prefix-aware: to the replica that has most of the prompt cached, unless the fleet is out of balance."""

from collections.abc import Sequence

from kvsim.engine.fleet.interface import Caches, Member
from kvsim.engine.fleet.routers.least import Least, requests
from kvsim.request import Request


class PrefixAware:
    """SGLang's cache-aware rule, with the caches as KV events tell them instead of a guess of the router's own.

    The fleet is out of balance where the most loaded replica has more than `imbalance_requests` requests more than the
    least loaded one and more than `imbalance_ratio` times as many; then, and where nobody has at least `min_match` of
    the prompt, the replica with the fewest requests gets it. Of several that have equally much, the one with fewest.
    The rule and its defaults are those of sgl-model-gateway's `CacheAwarePolicy` (Apache-2.0).
    """

    stateless = False
    follows_caches = True

    def __init__(
        self,
        caches: Caches,
        *,
        min_match: float = 0.3,
        imbalance_requests: int = 64,
        imbalance_ratio: float = 1.5,
    ) -> None:
        self._caches = caches
        self._least = Least(requests)
        self._min_match = min_match
        self._imbalance_requests = imbalance_requests
        self._imbalance_ratio = imbalance_ratio

    def choose(self, request: Request, members: Sequence[Member]) -> Member:
        """See `Router`."""
        if request.content is None or self._out_of_balance(members):
            return self._least.of(members)
        found = self._caches.found(request.content, request.prompt_tokens)
        most = max(found[member.number] for member in members)
        if not most or most < self._min_match * request.prompt_tokens:
            return self._least.of(members)
        return self._least.of([member for member in members if found[member.number] == most])

    def _out_of_balance(self, members: Sequence[Member]) -> bool:
        loads = [member.requests for member in members]
        high, low = max(loads), min(loads)
        return high - low > self._imbalance_requests and high > self._imbalance_ratio * low
