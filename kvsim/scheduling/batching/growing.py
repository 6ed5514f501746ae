"""Growing what runs: everyone at once while memory suffices, else one by one, preempting whom the policy names.

Decoding requests are never walked one by one while memory suffices: the allocator extends all of them at once. That is
exact because none of them can be left out for lack of token budget: `max_num_seqs` is at most the budget, the demand
of the running requests only falls after they were admitted within it, and whoever is cut short is the last of them.
"""

from collections.abc import Iterable

from kvsim.request import Sequence
from kvsim.scheduling.batching.queueing import Queueing
from kvsim.step import Ask, Blocked, Chunk, Preempted, Short, StepPlan


class Growing(Queueing):
    """How the running sequences get the slots of the next step."""

    def _extend_together(self, plan: StepPlan) -> int | None:
        """Extend every running request in one go; the budget left, or None if memory falls short of all of them."""
        decodes = self.allocator.decodes
        budget = self.budget - decodes.count
        asks = []
        for sequence in self.prefilling.values():
            want = self._want(sequence, budget)
            if want:
                asks.append(Ask(sequence, sequence.written + want))
                plan.chunks.append(Chunk(sequence, want, sequence.written))
                budget -= want
        if not asks and not decodes.count:
            return budget
        got = self.allocator.acquire(asks, decodes=True)
        if isinstance(got, Short):
            plan.chunks.clear()
            return None
        plan.take(got)
        return budget

    def _want(self, sequence: Sequence, budget: int) -> int:
        """Tokens of `sequence` that the next step computes, if it has memory for them."""
        return min(sequence.tokens - sequence.written, budget)

    def _growing(self) -> Iterable[Sequence]:
        """The running sequences that have something to compute, in admission order."""
        return self.running.values()

    def _extend_in_order(self, plan: StepPlan) -> int:
        """Extend the running requests one by one, preempting from the end; the budget left."""
        allocator, running = self.allocator, self.running
        # Whoever decodes has its token of the budget.
        budget = self.budget - allocator.decodes.count
        scheduled: dict[int, int] = {}

        def drop(victim: Sequence) -> int:
            """The budget that comes back."""
            return scheduled.pop(victim.id, 0) + victim.decoding

        for sequence in list(self._growing()):
            if sequence.id not in running:
                continue
            want = 1 if sequence.decoding else self._want(sequence, budget)
            if not want:
                continue
            written = allocator.decodes.written_of(sequence)
            asks = (Ask(sequence, written + want),)
            while isinstance(got := allocator.acquire(asks), Short):
                alone = len(running) == 1
                if alone or self.preemption == "abort":
                    short = got._replace(cause="outgrown") if alone else got
                    budget += drop(sequence)
                    self._drop(sequence)
                    plan.aborted.append(sequence)
                    plan.blocked.append(Blocked(sequence, short, "abort"))
                    break
                plan.blocked.append(Blocked(sequence, got, "preempt"))
                growing = list(self._growing())
                victim = self._victim(growing, allocator.decodes)
                budget += drop(victim)
                self._preempt(victim, plan)
                if victim is sequence:
                    break
            else:
                plan.take(got)
                plan.granted.append(sequence)
                if not sequence.decoding:
                    budget -= want
                    scheduled[sequence.id] = want
                    plan.chunks.append(Chunk(sequence, want, written))
        return budget

    def _preempt(self, victim: Sequence, plan: StepPlan) -> None:
        decoding = victim.decoding
        self._drop(victim, comes_again=True)
        # One that was scheduled in this very step before it was chosen computes nothing after all.
        plan.chunks[:] = [chunk for chunk in plan.chunks if chunk.sequence is not victim]
        plan.granted[:] = [sequence for sequence in plan.granted if sequence is not victim]
        self.waiting_count += 1
        slots = self.allocator.capacity(victim.written)
        if self.preemption == "swap" and self.host and victim.written and self.host.take(victim.id, slots):
            plan.preempted.append(Preempted(victim, 0, decoding, victim.written))
            plan.swapped_slots += victim.written
            self._swapped.appendleft(victim)
        else:
            plan.preempted.append(Preempted(victim, victim.written, decoding))
            victim.written = 0
            self._queue.appendleft(victim)
