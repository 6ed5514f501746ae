"""SGLang: mem_fraction_static of the memory that was free at start holds weights and KV; K and V are printed apart."""

from kvsim.capacity.engines.interface import Memory, Printed
from kvsim.capacity.layout.groups import Layout
from kvsim.capacity.span import Span


class SGLang:
    """KV = free after the weights - free before them x (1 - fraction); what a step needs lies in the rest."""

    name = "sglang"
    rule = "mem_fraction_static x memory free at start - weights; activations and graphs live in the rest"

    def kv_bytes(self, memory: Memory) -> Span:
        """What is free at start is the card less context and other processes."""
        free = memory.total - memory.non_torch - Span.exactly(memory.used_by_others)
        return free.times(memory.share) - memory.weights

    def most_tokens(self, longest: int) -> int | None:
        """All memory is taken."""
        return None

    def blocks(self, kv_bytes: float, block_bytes: int) -> int:
        """Pages, rounded down; one token each unless a page size is given."""
        return max(0, int(kv_bytes // block_bytes))

    def concurrency(self, layout: Layout, blocks: float, longest: int, step_tokens: int) -> float:
        """SGLang prints none; tokens over tokens."""
        return self.tokens(layout, blocks, 0, longest) / longest

    def tokens(self, layout: Layout, blocks: float, concurrency: float, longest: int) -> int:
        """Every layer holds every token."""
        return int(blocks) * layout.block

    def lines(self, printed: Printed) -> list[str]:
        """K and V apart, half each."""
        half = printed.kv_bytes / 2**31
        return [f"KV Cache is allocated. #tokens: {printed.tokens}, K size: {half:.2f} GB, V size: {half:.2f} GB"]
