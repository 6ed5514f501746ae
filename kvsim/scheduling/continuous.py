"""Continuous batching with chunked prefill: the step rules of vLLM's synchronous scheduler.

Running requests come first, in admission order: one token each, or the next chunk of a prompt. Then waiting ones are
admitted while token budget, `max_num_seqs` and memory allow; the first that fails stops admission (no overtaking).
When a running request cannot be extended the last admitted one is preempted: it loses its KV, goes to the front of the
queue and computes everything again; no request is admitted in that step. Where the allocator keeps prefixes, what is
found cached at admission is not computed. Rules 10-18 of vLLM 0.33.
"""

from typing import Any

from kvsim.memory.interface import Allocator
from kvsim.request import Sequence
from kvsim.scheduling.batching.scheduler import BatchScheduler
from kvsim.step import Blocked, Short, StepPlan


class ContinuousScheduler(BatchScheduler):
    """Running requests first, prompts in chunks beside them.

    `long_prefill_token_threshold` caps a chunk while more than one request is there (0: off). With
    `chunked_prefill` off a prompt is computed whole or waits. With `reserve_full_isl` a request is admitted only if
    the slots for all its known tokens could be had now, although only the first chunk's are taken. `limits` are those
    of `BatchScheduler`.
    """

    def __init__(
        self,
        allocator: Allocator,
        *,
        long_prefill_token_threshold: int = 0,
        chunked_prefill: bool = True,
        reserve_full_isl: bool = True,
        **limits: Any,
    ) -> None:
        super().__init__(allocator, **limits)
        self.long_prefill_token_threshold = long_prefill_token_threshold
        self.chunked_prefill = chunked_prefill
        self.reserve_full_isl = reserve_full_isl

    def silent_steps(self, longest_tokens: int) -> int:
        return super().silent_steps(longest_tokens) + 2 * (
            -(-longest_tokens // self.long_prefill_token_threshold) if self.long_prefill_token_threshold else 0
        )

    def plan(self) -> StepPlan:
        plan = StepPlan()
        budget = self._extend_together(plan)
        if budget is None:
            budget = self._extend_in_order(plan)
        if self.waiting_count and not plan.preempted:
            self._blocked = False
            left = self._swap_in(plan, budget)
            if left:
                self._admit(plan, left)
        return self._planned(plan)

    def _cap(self, want: int) -> int:
        threshold = self.long_prefill_token_threshold
        if threshold and want > threshold and len(self.running) + self.waiting_count > 1:
            return threshold
        return want

    def _want(self, sequence: Sequence, budget: int) -> int:
        return self._cap(super()._want(sequence, budget))

    def _admit(self, plan: StepPlan, budget: int) -> None:
        while (head := self.head) is not None and budget > 0:
            if not self._has_seats(head):
                self._blocked = True
                return
            if self._outgrown(plan, head):
                continue
            hit = self.allocator.lookup(head)
            chunk = self._cap(head.tokens - hit)
            lacking: list[Blocked] = []
            if chunk > self.budget and not self.chunked_prefill:
                # What it has generated since has made it too long for one step.
                self._abort(plan, head, "activation", chunk)
                continue
            if chunk > budget:
                if chunk <= budget + self.max_num_batched_tokens - self.budget:
                    # The engine's own budget would do, but there is no room for the activations.
                    lacking.append(Blocked(head, Short("activation", chunk, budget, budget), "wait"))
                if not self.chunked_prefill:
                    plan.blocked += lacking
                    # Until somebody who decodes leaves, unless prompts are being computed.
                    self._blocked = not self.prefilling
                    return
                chunk = budget
            if not self._let_in(plan, head, chunk, head.tokens if self.reserve_full_isl else 0, hit):
                return
            plan.blocked += lacking
            budget -= chunk
