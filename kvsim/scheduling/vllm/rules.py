"""The settings of vLLM's scheduler, under the engine's own names."""

from dataclasses import dataclass

POLICIES = ("fcfs", "priority")
"""Who is served first: who came first, or who has the lowest priority number."""


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What the scheduler of vLLM 0.33 can be told."""

    max_num_seqs: int = 256
    max_num_active_seqs: int | None = None
    """Requests that may run, where they are fewer than `max_num_seqs`."""
    max_num_batched_tokens: int = 2048
    """Tokens that one step computes at most."""
    max_model_len: int = 8192
    enable_chunked_prefill: bool = True
    """A prompt may be computed over several steps; otherwise it waits until it fits a step's remaining budget."""
    long_prefill_token_threshold: int = 0
    """Most tokens of one request in a step while others are there (0: off)."""
    long_prefill_adaptive: bool = False
    """The threshold is at least an equal share of the budget."""
    reserve_full_isl: bool = True
    """Admit a request only if all its known tokens would find room now."""
    watermark_blocks: int = 0
    """Free blocks that an admission must leave while anything runs."""
    policy: str = "fcfs"
    async_scheduling: bool = False
    """A step is scheduled before the output of the one before it is known."""
    prefill_schedule_interval: int = 1
    """While requests decode, prompts are computed in every such step only."""
    draft_tokens: int = 0
    """Tokens that a drafter proposes for each step of a decoding request (0: no speculation)."""
    lookahead_tokens: int = 0
    """Slots that the drafter itself writes beyond those of the step."""

    @property
    def most_running(self) -> int:
        """Requests that may run at once."""
        return min(self.max_num_seqs, self.max_num_active_seqs or self.max_num_seqs)
