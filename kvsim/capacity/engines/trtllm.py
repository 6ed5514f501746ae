"""TensorRT-LLM: a share of the memory that is FREE once the weights and buffers are there; blocks rounded up."""

from math import ceil

from kvsim.capacity.engines.interface import Memory, Printed
from kvsim.capacity.engines.vllm_first import VllmFirst
from kvsim.capacity.span import Span
from kvsim.units import GIB


class TensorRtLlm(VllmFirst):
    """`kv_cache_free_gpu_mem_fraction` x (total - weights - buffers - context)."""

    name = "trtllm"
    rule = "free_gpu_memory_fraction x (total - weights - activations - non-torch); blocks rounded up"

    def kv_bytes(self, memory: Memory) -> Span:
        """A share of what is left, not of the card."""
        free = memory.total - memory.weights - memory.activation - memory.non_torch
        return (free - Span.exactly(memory.used_by_others)).times(memory.share)

    def blocks(self, kv_bytes: float, block_bytes: int) -> int:
        """Rounded up."""
        return max(0, ceil(kv_bytes / block_bytes))

    def lines(self, printed: Printed) -> list[str]:
        """As logged."""
        return [
            f"[MemUsageChange] Allocated {printed.kv_bytes / GIB:.2f} GiB for max tokens in paged KV cache "
            f"({printed.tokens})."
        ]
