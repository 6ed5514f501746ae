"""The ledger of one device while it serves: weights + pool + workspace of the step + other + left = card.

The workspace of a step is what its activations and logits take at their peak; it grows with the tokens and with the
sequences of the step. At start-up an engine sets it aside for its largest step. Where the pool is given outright there
may be less, and then the largest step that runs is smaller: an out-of-memory of cause `activation`.
"""

from bisect import bisect_left
from dataclasses import dataclass, replace

from kvsim.capacity.deployment import Deployment
from kvsim.capacity.overheads.estimate import activation
from kvsim.capacity.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """The memory of one rank, in bytes; `deployment` says what a step takes."""

    card_bytes: int
    weights_bytes: int
    pool_bytes: int
    other_bytes: int
    """Driver, context, communication and captured graphs."""
    deployment: Deployment

    @classmethod
    def serving(cls, made: Plan, pool_bytes: int) -> "Device":
        """The poorest rank of a planned start, with a pool of `pool_bytes`."""
        stage = made.stage
        return cls(
            card_bytes=round(made.deployment.total.best),
            weights_bytes=round(stage.weights.best),
            pool_bytes=pool_bytes,
            other_bytes=round(stage.non_torch.best + stage.cuda_graphs.best),
            deployment=made.deployment,
        )

    @property
    def room_bytes(self) -> int:
        """What is there for the workspace of a step; negative where the rest is more than the card."""
        return self.card_bytes - self.weights_bytes - self.pool_bytes - self.other_bytes

    def workspace_bytes(self, tokens: int, sequences: int) -> int:
        """The peak of a step that computes `tokens` tokens of `sequences` sequences; nothing where it computes none."""
        if not tokens:
            return 0
        step = replace(self.deployment, max_num_batched_tokens=tokens, max_num_seqs=max(1, sequences))
        return round(activation(step).best)

    def most_tokens(self, budget: int, sequences: int) -> int:
        """The most tokens, at most `budget`, of a step of at most `sequences` sequences that the room is enough for."""
        return bisect_left(
            range(1, budget + 1),
            True,
            key=lambda tokens: self.workspace_bytes(tokens, min(tokens, sequences)) > self.room_bytes,
        )

    def ledger(self, tokens: int, sequences: int) -> dict[str, int]:
        """Where the card's bytes are in a step of so many tokens and sequences; they add up to `card`."""
        workspace = self.workspace_bytes(tokens, sequences)
        return {
            "card": self.card_bytes,
            "weights": self.weights_bytes,
            "pool": self.pool_bytes,
            "workspace": workspace,
            "other": self.other_bytes,
            "left": self.room_bytes - workspace,
        }
