"""The seam of the engines: memory of one rank to KV, KV to blocks, blocks to what the engine prints. All pure."""

from dataclasses import dataclass
from typing import Protocol

from kvsim.capacity.layout.groups import Layout
from kvsim.capacity.span import Span


@dataclass(frozen=True, slots=True)
class Memory:
    """One rank: the card's total, the engine's share of it, what other processes use, and what the engine itself takes
    beside KV. Bytes."""

    total: Span
    share: float
    used_by_others: int
    weights: Span
    activation: Span
    non_torch: Span
    cuda_graphs: Span


@dataclass(frozen=True, slots=True)
class Printed:
    """What the engine says of its pool at start-up."""

    blocks: int
    tokens: int
    concurrency: float
    longest: int
    layout: Layout
    kv_bytes: float


class EnginePolicy(Protocol):
    """One engine's arithmetic."""

    name: str
    rule: str
    """The arithmetic in one sentence."""

    def kv_bytes(self, memory: Memory) -> Span:
        """Memory for KV on one rank; negative where the rest does not fit."""
        ...

    def most_tokens(self, longest: int) -> int | None:
        """Tokens beyond which the pool is not made whatever memory there is; None: all memory is taken."""
        ...

    def blocks(self, kv_bytes: float, block_bytes: int) -> int:
        """Blocks that so much memory holds."""
        ...

    def concurrency(self, layout: Layout, blocks: float, longest: int, step_tokens: int) -> float:
        """How many requests of `longest` tokens the pool holds, as the engine prints it."""
        ...

    def tokens(self, layout: Layout, blocks: float, concurrency: float, longest: int) -> int:
        """Tokens of the pool, as the engine prints them."""
        ...

    def lines(self, printed: Printed) -> list[str]:
        """The engine's own lines on the pool."""
        ...
