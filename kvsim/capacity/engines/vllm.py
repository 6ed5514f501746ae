"""vLLM from 0.6.4 to 0.20: share of the whole card, less weights, non-torch memory and the activation peak. CUDA graphs
come on top."""

from math import ceil

from kvsim.capacity.engines.interface import Memory, Printed
from kvsim.capacity.layout.groups import Layout
from kvsim.capacity.span import Span
from kvsim.units import GIB


class Vllm:
    """`gpu_memory_utilization` x total - weights - non-torch - activation peak; blocks rounded down."""

    name = "vllm"
    rule = "utilisation x total - weights - non-torch - activation peak; CUDA graphs come on top"

    def kv_bytes(self, memory: Memory) -> Span:
        """Everything is measured as the growth since the engine started, so that other processes do not count."""
        share = memory.total.times(memory.share).each(ceil)
        return share - memory.weights - memory.non_torch - memory.activation

    def most_tokens(self, longest: int) -> int | None:
        """All memory is taken."""
        return None

    def blocks(self, kv_bytes: float, block_bytes: int) -> int:
        """Rounded down."""
        return max(0, int(kv_bytes // block_bytes))

    def concurrency(self, layout: Layout, blocks: float, longest: int, step_tokens: int) -> float:
        """Whole blocks for each request."""
        return blocks / layout.request_blocks(longest, step_tokens)

    def tokens(self, layout: Layout, blocks: float, concurrency: float, longest: int) -> int:
        """What the blocks hold in every group."""
        return int(layout.tokens(blocks))

    def lines(self, printed: Printed) -> list[str]:
        """As logged since V1."""
        return [
            f"Available KV cache memory: {printed.kv_bytes / GIB:.2f} GiB",
            f"GPU KV cache size: {printed.tokens:,} tokens",
            f"Maximum concurrency for {printed.longest:,} tokens per request: {printed.concurrency:.2f}x",
        ]
