"""What prompts share: the share that a cache without bounds would find, requests one by one in file order.

A prompt's hit is its longest leading run of blocks that earlier prompts had. Where a trace tells no blocks but what
each turn adds (`new_prompt_tokens`), the rest of the prompt is the hit.
"""

from dataclasses import dataclass

from kvsim.workload.readers.request import BlockId, TraceRequest


@dataclass(frozen=True)
class Sharing:
    """Shares of all prompts' blocks and tokens, the last, partly filled block included; None where there are none.

    `session_hit_tokens` is told by the trace itself, as what was there before each turn.
    """

    blocks: int
    distinct_blocks: int
    ideal_hit_blocks: float | None
    ideal_hit_tokens: float | None
    session_hit_tokens: float | None


class SharingCount:
    """Counts as requests come by; holds one number a distinct block."""

    def __init__(self) -> None:
        self._seen: set[BlockId] = set()
        self._blocks = self._hit_blocks = self._tokens = self._hit_tokens = 0
        self._told_tokens = self._held_tokens = 0

    def add(self, request: TraceRequest) -> None:
        """Serve one request. Mutates."""
        if request.new_prompt_tokens is not None:
            self._told_tokens += request.prompt_tokens
            self._held_tokens += max(0, request.prompt_tokens - request.new_prompt_tokens)
        self._tokens += request.prompt_tokens
        blocks = request.keyed_blocks
        if not blocks:
            return
        seen = self._seen
        found = next((at for at, block in enumerate(blocks) if block not in seen), len(blocks))
        seen.update(blocks[found:])
        self._blocks += len(blocks)
        self._hit_blocks += found
        self._hit_tokens += min(found * request.block_tokens, request.prompt_tokens)

    def result(self) -> Sharing:
        """What was counted so far."""
        has_blocks = self._blocks > 0
        return Sharing(
            blocks=self._blocks,
            distinct_blocks=len(self._seen),
            ideal_hit_blocks=self._hit_blocks / self._blocks if has_blocks else None,
            ideal_hit_tokens=self._hit_tokens / self._tokens if has_blocks else None,
            session_hit_tokens=self._held_tokens / self._told_tokens if self._told_tokens else None,
        )
