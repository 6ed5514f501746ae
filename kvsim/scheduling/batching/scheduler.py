"""What all schedulers have in common: admission, the way back from host memory, and the end of a step."""

from abc import ABC, abstractmethod

from kvsim.request import Sequence
from kvsim.scheduling.batching.growing import Growing
from kvsim.step import Ask, Blocked, Chunk, Forked, Grant, Rows, Short, StepPlan


class BatchScheduler(Growing, ABC):
    """First come, first served; a subclass says who is admitted when.

    `preemption` says what happens when a running request cannot be extended: a `victim` loses its KV and computes it
    again (recompute) or has it moved to host memory and back (swap, to `host`; recompute where that is full), the
    request itself fails, an out-of-memory error that its user sees (abort), or it cannot happen, because a request is
    admitted only if all that run could reach their `max_tokens` beside it (never; a request whose client sets none
    counts with `max_model_len`).

    `workspace_tokens` is how many tokens the memory for activations has room for in a step (None: as many as the
    budget). With `kernel` padded attention takes rows x longest, and the batch is kept compact by copies. Where nothing
    is kept (`no-cache`) the budget says nothing: everything is computed in every step.
    """

    # What is known of the steps to come.

    def impossible(self, sequence: Sequence) -> Short | None:
        if self.chunked_prefill or sequence.tokens <= self.budget:
            return None
        return Short("activation", sequence.tokens, self.budget, self.budget)

    def rows(self) -> Rows:
        if self._compact:
            return self._compact.rows(anew=not self.allocator.keeps)
        decodes = self.allocator.decodes
        return Rows(decodes.count, decodes.written + decodes.count, 0 if self.allocator.keeps else decodes.pairs)

    def stable_steps(self, limit: int) -> int:
        waits = self.waiting_count
        if self.prefilling or not self.running or (waits and not self._blocked):
            return 0
        if self._compact is not None and self._compact.scattered:
            return 0
        if waits and self.allocator.caches and (head := self.head) is not None and self._has_seats(head):
            # It is tried again in each step, with what it finds cached by then.
            return self.allocator.hit_lasts(head, limit)
        return limit

    def silent_steps(self, longest_tokens: int) -> int:
        # The oldest running request is never preempted, so the steps in a row that emit nothing are at most those
        # that its prompt takes; twice that, and some, is far from anything that ends by itself.
        return 64 + 2 * -(-longest_tokens // min(longest_tokens, self.budget))

    # Letting in.

    def _let_in(self, plan: StepPlan, head: Sequence, chunk: int, gate: int, hit: int = 0) -> bool:
        """Admit the head of the queue with the next `chunk` tokens of its prompt after `hit` that it finds cached.

        False if there is no memory.
        """
        allocator = self.allocator
        got: Grant | Short
        uncommitted = allocator.pool_slots - self._committed
        if self.preemption == "never" and self._commitment(head) > uncommitted:
            got = Short("capacity", self._commitment(head), uncommitted, uncommitted)
        else:
            got = allocator.acquire((Ask(head, hit + chunk, True, gate, not self.running),))
        if isinstance(got, Short):
            plan.blocked.append(Blocked(head, got, "wait"))
            self._blocked = True
            return False
        plan.take(got)
        self._dequeue()
        self._enter(head)
        self.prefilling[head.id] = head
        plan.admitted.append(head)
        plan.chunks.append(Chunk(head, chunk, hit))
        return True

    def _swap_in(self, plan: StepPlan, budget: int) -> int | None:
        """Let in those that wait in host memory while there is room; the budget left, or None if some still wait.

        They go on where they were in this very step.
        """
        allocator, host = self.allocator, self.host
        while (head := self.head) is not None and self._swapped:
            assert host is not None
            if not self._has_seats(head):
                self._blocked = True
                return None
            if not budget:
                return None
            if self._outgrown(plan, head):
                host.give(head.id)
                head.written = 0
                continue
            want = self._want(head, budget)
            wanted = head.written + want
            got = allocator.acquire((Ask(head, wanted, True, wanted, not self.running),))
            if isinstance(got, Short):
                plan.blocked.append(Blocked(head, got, "wait"))
                self._blocked = True
                return None
            plan.take(got)
            self._dequeue()
            host.give(head.id)
            allocator.land(head)
            plan.swapped_slots += head.written
            self._enter(head)
            plan.resumed.append(head)
            if head.written + 1 == head.tokens and head.tokens > head.prompt_tokens:
                allocator.begin_decode(head)
                self._joined(head)
            else:
                self.prefilling[head.id] = head
                plan.chunks.append(Chunk(head, want, head.written))
            budget -= want
        return budget

    # The step.

    @abstractmethod
    def plan(self) -> StepPlan: ...

    def launched(self, plan: StepPlan) -> None:
        """A step is planned when the last one is over."""

    def leapt(self, steps: int) -> None:
        """The decode set is all that is known of those who decode."""

    def _planned(self, plan: StepPlan) -> StepPlan:
        """The plan with the decoding part of the step filled in, and what the whole takes where nothing is kept."""
        if not plan.stalled:
            plan.decodes = self.allocator.decodes.count
            plan.rows = self.rows()
            if self._compact:
                plan.gathered_slots = self._compact.gather()
        if not self.allocator.keeps:
            lengths = [tokens + written for tokens, written in plan.padded_chunks]
            plan.pairs = plan.rows.pairs + sum(length * (length + 1) // 2 for length in lengths)
        return plan

    def complete(self, plan: StepPlan) -> list[Sequence]:
        allocator = self.allocator
        if allocator.settle(plan.chunks, stalled=plan.stalled):
            self._blocked = False
        sampled = []
        for chunk in plan.chunks:
            sequence = chunk.sequence
            if sequence.written == sequence.tokens:
                sequence.tokens += 1
                del self.prefilling[sequence.id]
                for child in sequence.samples:
                    plan.forked.append(Forked(sequence, child, allocator.fork(sequence, child)))
                    self._start(child)
                for member in (sequence, *sequence.samples):
                    allocator.begin_decode(member)
                    self._joined(member)
                    sampled.append(member)
                sequence.samples, sequence.seats = (), 1
        return sampled

    def replace(self, dropped: Sequence, kept: Sequence) -> int:
        self.allocator.release(dropped)
        if self._compact:
            self._compact.leave(dropped)
        common = self.allocator.fork(kept, dropped)
        self._joined(dropped)
        self._blocked = False
        return common

    def _joined(self, sequence: Sequence) -> None:
        """It decodes from now on."""
        if self._compact:
            self._compact.join(sequence)
