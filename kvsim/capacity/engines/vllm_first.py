"""vLLM 0.2 to 0.6.3: share of the card, less all that is in use on it at the peak of one profiled prompt."""

from kvsim.capacity.engines.interface import Memory, Printed
from kvsim.capacity.engines.vllm import Vllm
from kvsim.capacity.layout.groups import Layout
from kvsim.capacity.span import Span


class VllmFirst(Vllm):
    """`num_gpu_blocks` = (total x utilisation - peak) // block bytes, the peak being all memory in use on the card."""

    name = "vllm-first"
    rule = (
        "utilisation x total - all memory in use at the peak of one prompt of max_model_len, other processes' included"
    )

    def kv_bytes(self, memory: Memory) -> Span:
        """Other processes count too."""
        return super().kv_bytes(memory) - Span.exactly(memory.used_by_others)

    def concurrency(self, layout: Layout, blocks: float, longest: int, step_tokens: int) -> float:
        """Tokens over tokens."""
        return int(blocks) * layout.block / longest

    def lines(self, printed: Printed) -> list[str]:
        """As logged then."""
        return [
            f"# GPU blocks: {printed.blocks}",
            f"Maximum concurrency for {printed.longest} tokens per request: {printed.concurrency:.2f}x",
        ]
