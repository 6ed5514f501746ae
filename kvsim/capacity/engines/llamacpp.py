"""llama.cpp: the user gives the context, KV for it is allocated at start; the only question is whether it fits."""

from kvsim.capacity.engines.interface import Memory, Printed
from kvsim.capacity.engines.vllm_first import VllmFirst
from kvsim.capacity.span import Span


class LlamaCpp(VllmFirst):
    """Whatever the card has beside weights and compute buffers is room, of which the context given takes a part."""

    name = "llama.cpp"
    rule = "nothing is derived: weights + compute buffers + KV of the given context must be at most the free memory"

    def kv_bytes(self, memory: Memory) -> Span:
        """Room for KV."""
        free = memory.total - memory.weights - memory.activation - memory.non_torch
        return free - Span.exactly(memory.used_by_others)

    def most_tokens(self, longest: int) -> int | None:
        """The context, and no more."""
        return longest

    def lines(self, printed: Printed) -> list[str]:
        """K and V as logged, for the context that was given."""
        size_mib = printed.longest * printed.layout.block_bytes / printed.layout.block / 2**20
        return [f"KV self size = {size_mib:.2f} MiB, K: {size_mib / 2:.2f} MiB, V: {size_mib / 2:.2f} MiB"]
