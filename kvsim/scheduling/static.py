"""Static batching: a batch is formed, computed as one padded rectangle, and handed over when its last member is done.

The request-level scheduling of FasterTransformer and its like, as Orca (OSDI'22, s2) and PagedAttention (s6.1) describe
it: nobody joins a batch that runs, whoever is done early keeps its row and its slots until all are, and every row is
computed at the length of the longest.
"""

from collections.abc import Iterable
from typing import Any

from kvsim.memory.interface import Allocator
from kvsim.request import Sequence
from kvsim.scheduling.batching.whole_prompts import WholePromptScheduler
from kvsim.step import NO_ROWS, Rows, StepPlan


class StaticScheduler(WholePromptScheduler):
    """Batches of at most `max_num_seqs`. Whoever is preempted waits for a later batch; nothing is swapped."""

    def __init__(self, allocator: Allocator, **limits: Any) -> None:
        super().__init__(allocator, **limits)
        if self.preemption == "swap":
            raise ValueError("preemption is 'swap'; a static batch preempts by recompute or abort, or never")
        if self._compact:
            raise ValueError("kernel is 'padded'; a static batch is a padded rectangle anyway, and nobody joins it")
        if allocator.caches:
            raise ValueError(
                f"{allocator.name} keeps contents; a static batch keeps the slots of those that have ended"
            )
        self._ended: set[int] = set()
        """Members that have emitted their last token."""

    def rows(self) -> Rows:
        decodes = self.allocator.decodes
        if not decodes.count:
            return NO_ROWS
        height = len(self.running)
        longest = max(sequence.origin for sequence in self.running.values())
        return Rows.even(height, longest + decodes.clock + 1, anew=not self.allocator.keeps)

    def forks(self, sequence: Sequence) -> bool:
        return False

    def stable_steps(self, limit: int) -> int:
        return limit if self.running and not self.prefilling else 0

    def finish(self, sequence: Sequence) -> None:
        self.allocator.retire(sequence)
        self._ended.add(sequence.id)

    def done(self) -> list[Sequence]:
        return list(self.running.values()) if len(self._ended) == len(self.running) else []

    def plan(self) -> StepPlan:
        plan = StepPlan(rectangle=True)
        if not self.running:
            self._admit(plan)
        elif self._extend_together(plan) is None:
            self._extend_in_order(plan)
        return self._planned(plan)

    def _growing(self) -> Iterable[Sequence]:
        return [sequence for sequence in self.running.values() if sequence.id not in self._ended]

    def _drop(self, sequence: Sequence, *, comes_again: bool = False) -> None:
        super()._drop(sequence, comes_again=comes_again)
        self._ended.discard(sequence.id)
