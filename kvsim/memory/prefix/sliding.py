"""Sliding windows: a token sees the `window` - 1 tokens before it. Rules 24 to 27 of vLLM's manager."""

from collections.abc import Sequence
from dataclasses import dataclass

from kvsim.memory.prefix.chain import Chain
from kvsim.memory.prefix.group import Find, Group


@dataclass(frozen=True)
class SlidingGroup(Group):
    """Gives back what lies behind its window, and hits where the window before a boundary is cached.

    `window`, `max_in_flight_tokens` (scheduled and not yet processed, at most) and `max_model_len` are in tokens.
    `retention_tokens` says which blocks are worth the map: 0 those that a replay of the same prompt needs, None all,
    N also the window before every N-th token (a multiple of `block_size`).
    """

    window: int
    block_size: int
    retention_tokens: int | None
    max_in_flight_tokens: int
    max_model_len: int

    def __post_init__(self) -> None:
        if self.retention_tokens is not None and self.retention_tokens % self.block_size:
            raise ValueError(
                f"retention_interval is {self.retention_tokens}; it must be a multiple of block_size "
                f"({self.block_size})"
            )

    @property
    def tail_blocks(self) -> int:
        """Blocks in a row that must be cached before a boundary, for the token behind it to see its whole window."""
        return -(-(self.window - 1) // self.block_size)

    @property
    def most_blocks(self) -> int | None:
        """The window and what is in flight behind it, one block more because neither need start with a block."""
        held_tokens = min(self.window - 1 + self.max_in_flight_tokens, self.max_model_len)
        return -(-held_tokens // self.block_size) + 1

    def behind(self, computed_tokens: int) -> int:
        """Whole blocks below the window of the next token."""
        return max(0, computed_tokens - self.window + 1) // self.block_size

    def hit(self, chain: Chain, blocks: int, find: Find, none: tuple[int, ...]) -> list[tuple[int, ...]]:
        """The last place with a full tail of cached blocks before it, or all blocks from the start on."""
        row: list[tuple[int, ...]] = []
        """Cached blocks in a row from the present place on, last first."""
        for place in range(blocks - 1, -1, -1):
            block = find(chain[place])
            if block is None:
                row = []
                continue
            row.append(block)
            if len(row) >= self.tail_blocks:
                return [none] * place + row[::-1]
        return row[::-1]

    def keeps(self, block: int, boundaries: Sequence[int]) -> bool:
        """Whether it is in the tail of a segment of `retention_tokens`, or in the tail before a boundary."""
        tail = self.tail_blocks
        segment = 1 if self.retention_tokens is None else self.retention_tokens // self.block_size
        if segment and block % segment >= segment - tail:
            return True
        if self.retention_tokens is None:
            return False
        ends = (tokens // self.block_size for tokens in boundaries)
        return any(end - tail <= block < end for end in ends)
