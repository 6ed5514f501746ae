"""vLLM from 0.21: the CUDA graphs are estimated before the pool and subtracted as well."""

from kvsim.capacity.engines.interface import Memory
from kvsim.capacity.engines.vllm import Vllm
from kvsim.capacity.layout.groups import Layout
from kvsim.capacity.span import Span


class VllmGraphs(Vllm):
    """As before, less the CUDA graphs; printed tokens are what the printed concurrency amounts to."""

    name = "vllm-graphs"
    rule = "utilisation x total - weights - non-torch - activation peak - CUDA graphs"

    def kv_bytes(self, memory: Memory) -> Span:
        """Less the graphs."""
        return super().kv_bytes(memory) - memory.cuda_graphs

    def tokens(self, layout: Layout, blocks: float, concurrency: float, longest: int) -> int:
        """Concurrency x the longest request, rounded down; of one group alone, what its blocks hold."""
        return int(concurrency * longest) if len(layout.groups) > 1 else int(layout.tokens(blocks))
