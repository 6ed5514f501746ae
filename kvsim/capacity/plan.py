"""What the planner answers: stages, the breakdown of the poorest rank, the pool, the verdict."""

from dataclasses import dataclass, field

from kvsim.capacity.deployment import Deployment
from kvsim.capacity.engines import policy
from kvsim.capacity.engines.interface import Printed
from kvsim.capacity.layout.groups import Layout
from kvsim.capacity.span import Span


@dataclass(frozen=True, slots=True)
class StageMemory:
    """One pipeline stage on one of its ranks: memory in bytes, and the blocks that its KV memory holds."""

    number: int
    of: int
    weights: Span
    activation: Span
    non_torch: Span
    cuda_graphs: Span
    kv: Span
    blocks: Span
    layout: Layout

    @property
    def name(self) -> str:
        """For people: `rank 0`, or the stage and its share of the layers."""
        return "every rank" if self.of == 1 else f"stage {self.number + 1} of {self.of}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """`fits`, `at_risk`, `offload` or `refused`, with the engine's class of reason and a sentence."""

    word: str
    reason_class: str | None = None
    reason: str = ""

    @property
    def runs(self) -> bool:
        """Whether the engine would start."""
        return self.word != "refused"


@dataclass(frozen=True)
class Plan:
    """A pool and where it comes from.

    `stage` is the poorest, which decides; `blocks` and `tokens` are spans of whole numbers. `provenance` says for each
    part where it comes from, `not_modelled` what is left out.
    """

    deployment: Deployment
    stages: tuple[StageMemory, ...]
    stage: StageMemory
    blocks: Span
    tokens: Span
    concurrency: Span
    verdict: Verdict
    provenance: dict[str, str] = field(default_factory=dict)
    not_modelled: tuple[str, ...] = ()

    @property
    def layout(self) -> Layout:
        """The blocks of the stage that decides."""
        return self.stage.layout

    @property
    def printed(self) -> Printed:
        """What the engine would say."""
        longest = self.deployment.longest
        return Printed(
            int(self.blocks.best),
            int(self.tokens.best),
            self.concurrency.best,
            longest,
            self.layout,
            self.stage.kv.best,
        )

    @property
    def lines(self) -> list[str]:
        """What the engine would print."""
        return policy(self.deployment.engine).lines(self.printed)

    @property
    def kv_bytes_per_token(self) -> int | None:
        """Bytes a token on a rank, where it is one number: every layer holds every token."""
        if len(self.layout.groups) > 1 or self.layout.groups[0].kind != "full":
            return None
        return self.layout.block_bytes // self.layout.block

    @property
    def left(self) -> Span:
        """What of the card is neither weights, overheads nor KV: outside the engine's share, and lost to rounding."""
        stage = self.stage
        taken = stage.weights + stage.activation + stage.non_torch + stage.cuda_graphs
        return self.deployment.total - taken - Span.exactly(self.kv_taken_bytes)

    @property
    def kv_taken_bytes(self) -> int:
        """KV that is allocated: whole blocks."""
        return int(self.blocks.best) * self.layout.block_bytes

    def requests_at_once(self, tokens: int) -> float:
        """How many requests of `tokens` tokens the pool holds at once."""
        needed = self.layout.request_blocks(max(1, tokens), self.deployment.step_tokens)
        return self.blocks.best * self.deployment.pool_ranks / needed
