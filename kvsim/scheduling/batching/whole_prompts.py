"""Admission of whole prompts, side by side in one padded rectangle."""

from kvsim.scheduling.batching.scheduler import BatchScheduler
from kvsim.step import Blocked, Short, StepPlan


class WholePromptScheduler(BatchScheduler):
    """Prompts are computed in one piece; those of one step, padded to the longest, keep to the token budget."""

    def _admit(self, plan: StepPlan) -> None:
        longest = 0
        while (head := self.head) is not None:
            if not self._has_seats(head):
                self._blocked = True
                return
            if self._outgrown(plan, head):
                continue
            if head.tokens > self.budget:
                # What it has generated since has made it too long for one step.
                self._abort(plan, head, "activation", head.tokens)
                continue
            longest = max(longest, head.tokens)
            rectangle = longest * (len(plan.chunks) + 1)
            if rectangle > self.budget:
                if rectangle <= self.max_num_batched_tokens:
                    # The engine's own budget would do, but there is no room for the activations.
                    plan.blocked.append(Blocked(head, Short("activation", rectangle, self.budget, self.budget), "wait"))
                return
            if not self._let_in(plan, head, head.tokens, head.tokens):
                return
