"""Prompts before everything else, as vLLM did before its chunked prefill: a step computes prompts, or it decodes.

While any waiting request can be admitted, steps compute whole prompts and those that decode stand still. Only then
everyone decodes; whoever cannot be extended preempts the last admitted, and those in host memory are let in again
before anybody new. The rules of `Scheduler._schedule` in vLLM 0.2 (Apache-2.0).
"""

from kvsim.scheduling.batching.whole_prompts import WholePromptScheduler
from kvsim.step import StepPlan


class PrefillFirstScheduler(WholePromptScheduler):
    """Prompts first, then a step of decoding."""

    def plan(self) -> StepPlan:
        plan = StepPlan(rectangle=True)
        if self.head is not None and not self._swapped and not self._blocked:
            self._admit(plan)
        if plan.chunks:
            plan.stalled = self.allocator.decodes.count > 0
            return self._planned(plan)
        if self._extend_together(plan) is None:
            self._extend_in_order(plan)
        if self.head is not None and self._swapped and not plan.preempted:
            self._blocked = False
            self._swap_in(plan, self.budget - self.allocator.decodes.count)
        return self._planned(plan)
