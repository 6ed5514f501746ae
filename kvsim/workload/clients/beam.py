"""Beam search as the KV memory sees it: candidates that are dropped while others fork."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvsim.workload.arguments import check_share

if TYPE_CHECKING:
    from numpy.random import Generator

Replacement = tuple[int, int, int]
"""(output tokens emitted so far, candidate that is dropped, candidate that goes on in its place as well)"""


@dataclass(frozen=True, kw_only=True)
class Beam:
    """After each output token every candidate but the best is dropped with probability `turnover`.

    Which other one forks in its place is drawn evenly. What a real model does depends on its probabilities; the
    published savings of beam search are not to be had from lengths alone. ValueError for a turnover outside 0 to 1.
    """

    turnover: float

    def __post_init__(self) -> None:
        check_share("turnover", self.turnover)

    def replacements(self, generator: "Generator", candidates: int, output_tokens: int) -> tuple[Replacement, ...]:
        """All replacements of one request, in order of time; none before the second token and none at the last."""
        steps = max(0, output_tokens - 2)
        drops = generator.random((steps, candidates - 1)) < self.turnover
        found = []
        for step, index in zip(*drops.nonzero(), strict=True):
            dropped = int(index) + 1
            kept = int(generator.integers(candidates - 1))
            found.append((int(step) + 2, dropped, kept + (kept >= dropped)))
        return tuple(found)
