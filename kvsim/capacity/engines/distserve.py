"""DistServe: a share of the card, less the weights and a fixed share of the card for a step."""

from kvsim.capacity.engines.interface import Memory
from kvsim.capacity.engines.vllm_first import VllmFirst
from kvsim.capacity.overheads.releases import overheads
from kvsim.capacity.span import Span


class DistServe(VllmFirst):
    """`(total x utilisation - total x 0.01 - weights) // block bytes`; nothing is profiled."""

    name = "distserve"
    rule = "utilisation x total - weights - 1 % of total"

    def kv_bytes(self, memory: Memory) -> Span:
        """Every rank holds the embedding whole; the weights that are given already say so."""
        aside: float = overheads()["engines"]["distserve"][0]["workspace_share"]
        return memory.total.times(memory.share - aside) - memory.weights
