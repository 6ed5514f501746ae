"""Continuous batching with chunked prefill: the step rules of vLLM's synchronous scheduler, caching off.

Running requests come first, in admission order: one token each, or the next chunk of a prompt. Then waiting ones are
admitted while token budget, `max_num_seqs` and memory allow; the first that fails stops admission (no overtaking).
When a running request cannot be extended the last admitted one is preempted: it loses its KV, goes to the front of the
queue and computes everything again; no request is admitted in that step. Rules 10-18 of vLLM 0.33.

Decoding requests are never walked one by one while memory suffices: the allocator extends all of them at once. That is
exact because none of them can be left out for lack of token budget: `max_num_seqs` is at most the budget, the demand
of the running requests only falls after they were admitted within it, and whoever is cut short is the last of them.
"""

from collections import deque

from kvsim.memory.interface import Allocator
from kvsim.request import Sequence
from kvsim.scheduling.victims import VICTIMS
from kvsim.step import Ask, Blocked, Chunk, Grant, Preempted, Short, StepPlan

PREEMPTIONS = ("recompute", "abort", "never")
"""What happens when a running request cannot be extended."""


class ContinuousScheduler:
    """First come, first served.

    `preemption` says what happens when a running request cannot be extended: a `victim` loses its KV and computes it
    again (recompute), the request itself fails, an out-of-memory error that its user sees (abort), or it cannot
    happen, because a request is admitted only if all that run could reach their `max_tokens` beside it (never; a
    request whose client sets none counts with `max_model_len`).

    `long_prefill_token_threshold` caps a chunk while more than one request is there (0: off). With
    `chunked_prefill` off a prompt is computed whole or waits. With `reserve_full_isl` a request is admitted only if
    the slots for all its known tokens could be had now, although only the first chunk's are taken.
    """

    def __init__(
        self,
        allocator: Allocator,
        *,
        max_num_seqs: int = 256,
        max_num_batched_tokens: int = 2048,
        long_prefill_token_threshold: int = 0,
        chunked_prefill: bool = True,
        reserve_full_isl: bool = True,
        preemption: str = "recompute",
        victim: str = "last",
        max_model_len: int | None = None,
    ) -> None:
        if max_num_seqs < 1:
            raise ValueError(f"max_num_seqs is {max_num_seqs}; at least one request must be able to run")
        if max_num_batched_tokens < max_num_seqs:
            raise ValueError(
                f"max_num_batched_tokens is {max_num_batched_tokens}; it must be at least max_num_seqs "
                f"({max_num_seqs}), so that every running request can decode in each step"
            )
        if preemption not in PREEMPTIONS:
            raise ValueError(f"preemption is {preemption!r}; it must be one of {', '.join(PREEMPTIONS)}")
        if victim not in VICTIMS:
            raise ValueError(f"victim is {victim!r}; it must be one of {', '.join(VICTIMS)}")
        if preemption == "never" and max_model_len is None:
            raise ValueError("max_model_len is missing; without preemption it bounds requests that set no max_tokens")
        self.allocator = allocator
        self.preemption = preemption
        self.max_model_len = max_model_len
        self._victim = VICTIMS[victim]
        self._committed = 0
        """Slots that the running requests may come to own; kept where nothing is ever preempted."""
        self.max_num_seqs = max_num_seqs
        self.max_num_batched_tokens = max_num_batched_tokens
        self.long_prefill_token_threshold = long_prefill_token_threshold
        self.chunked_prefill = chunked_prefill
        self.reserve_full_isl = reserve_full_isl
        self.running: dict[int, Sequence] = {}
        """By id, in admission order."""
        self.prefilling: dict[int, Sequence] = {}
        """Those of the running that have known tokens left to compute."""
        self.waiting_count = 0
        self._queue: deque[Sequence] = deque()
        self._admissions = 0
        self._blocked = False
        """The head of the queue was tried and nothing has changed since that could help it."""

    @property
    def running_count(self) -> int:
        return len(self.running)

    @property
    def head(self) -> Sequence | None:
        queue = self._queue
        while queue and queue[0].gone:
            queue.popleft()
        return queue[0] if queue else None

    def live(self) -> list[Sequence]:
        return [*self.running.values(), *(s for s in self._queue if not s.gone)]

    def submit(self, sequence: Sequence) -> None:
        sequence.tokens = sequence.prompt_tokens
        self._queue.append(sequence)
        if not self.waiting_count:
            self._blocked = False
        self.waiting_count += 1

    def leave(self, sequence: Sequence) -> None:
        self._blocked = False
        if sequence.id in self.running:
            self._drop(sequence)
        else:
            sequence.gone = True
            self.waiting_count -= 1

    def declare(self, sequence: Sequence) -> int:
        if self.preemption != "never":
            return 0
        assert self.max_model_len is not None
        if sequence.max_tokens is None:
            return self.max_model_len
        return min(self.max_model_len, sequence.prompt_tokens + sequence.max_tokens)

    def _drop(self, sequence: Sequence) -> None:
        if self.preemption == "never":
            self._committed -= self.allocator.capacity(sequence.declared)
        del self.running[sequence.id]
        self.prefilling.pop(sequence.id, None)
        self.allocator.release(sequence)

    def silent_steps(self, longest_tokens: int) -> int:
        # The oldest running request is never preempted, so the steps in a row that emit nothing are at most those
        # that its prompt takes; twice that, and some, is far from anything that ends by itself.
        chunk = min(self.long_prefill_token_threshold or longest_tokens, self.max_num_batched_tokens)
        return 64 + 2 * -(-longest_tokens // chunk)

    def stable_steps(self, limit: int) -> int:
        if self.prefilling or not self.running or (self.waiting_count and not self._blocked):
            return 0
        return limit

    def plan(self) -> StepPlan:
        plan = StepPlan()
        budget = self._extend_together(plan)
        if budget is None:
            budget = self._extend_in_order(plan)
        if plan.preempted:
            self._blocked = False
        elif self.waiting_count:
            self._admit(plan, budget)
        decodes = self.allocator.decodes
        plan.decodes = decodes.count
        plan.context = decodes.written + decodes.count
        return plan

    def _extend_together(self, plan: StepPlan) -> int | None:
        """Extend every running request in one go; the budget left, or None if memory falls short of all of them."""
        decodes = self.allocator.decodes
        budget = self.max_num_batched_tokens - decodes.count
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
        want = min(sequence.tokens - sequence.written, budget)
        threshold = self.long_prefill_token_threshold
        if threshold and want > threshold and len(self.running) + self.waiting_count > 1:
            return threshold
        return want

    def _extend_in_order(self, plan: StepPlan) -> int:
        """Extend the running requests one by one, preempting from the end; the budget left."""
        budget = self.max_num_batched_tokens
        allocator, running = self.allocator, self.running
        scheduled: dict[int, int] = {}
        for sequence in list(running.values()):
            if sequence.id not in running:
                continue
            want = min(1, budget) if sequence.decoding else self._want(sequence, budget)
            if not want:
                continue
            written = allocator.decodes.written_of(sequence)
            asks = (Ask(sequence, written + want),)
            while isinstance(got := allocator.acquire(asks), Short):
                if len(running) == 1:
                    outgrown = got._replace(cause="outgrown")
                    self._drop(sequence)
                    plan.aborted.append(sequence)
                    plan.blocked.append(Blocked(sequence, outgrown, "abort"))
                    break
                if self.preemption == "abort":
                    self._drop(sequence)
                    plan.aborted.append(sequence)
                    plan.blocked.append(Blocked(sequence, got, "abort"))
                    break
                plan.blocked.append(Blocked(sequence, got, "preempt"))
                victim = self._victim(running.values(), allocator.decodes)
                self._preempt(victim, plan)
                budget += scheduled.pop(victim.id, 0)
                if victim is sequence:
                    break
            else:
                budget -= want
                scheduled[sequence.id] = want
                plan.take(got)
                plan.granted.append(sequence)
                if not sequence.decoding:
                    plan.chunks.append(Chunk(sequence, want, written))
        return budget

    def _preempt(self, victim: Sequence, plan: StepPlan) -> None:
        decoding = victim.decoding
        self._drop(victim)
        # One that was scheduled in this very step before it was chosen computes nothing after all.
        plan.chunks[:] = [chunk for chunk in plan.chunks if chunk.sequence is not victim]
        plan.granted[:] = [sequence for sequence in plan.granted if sequence is not victim]
        plan.preempted.append(Preempted(victim, victim.written, decoding))
        victim.written = 0
        self._queue.appendleft(victim)
        self.waiting_count += 1

    def _admit(self, plan: StepPlan, budget: int) -> None:
        allocator = self.allocator
        self._blocked = False
        while (head := self.head) is not None and budget:
            if len(self.running) >= self.max_num_seqs:
                self._blocked = True
                return
            need = allocator.capacity(head.reach)
            if need > allocator.most_slots:
                use = allocator.usage()
                plan.blocked.append(Blocked(head, Short("outgrown", need, use.free, use.largest_hole), "abort"))
                plan.aborted.append(head)
                self._dequeue()
                continue
            chunk = head.tokens
            threshold = self.long_prefill_token_threshold
            if threshold and chunk > threshold and len(self.running) + self.waiting_count > 1:
                chunk = threshold
            if chunk > budget:
                if not self.chunked_prefill:
                    return
                chunk = budget
            gate = head.tokens if self.reserve_full_isl else 0
            got: Grant | Short
            if self.preemption == "never" and self._committed + need > allocator.pool_slots:
                use = allocator.usage()
                got = Short("capacity", need, use.free, use.largest_hole)
            else:
                got = allocator.acquire((Ask(head, chunk, True, gate, not self.running),))
            if isinstance(got, Short):
                plan.blocked.append(Blocked(head, got, "wait"))
                self._blocked = True
                return
            plan.take(got)
            self._dequeue()
            head.admission = self._admissions
            self._admissions += 1
            self.running[head.id] = self.prefilling[head.id] = head
            if self.preemption == "never":
                self._committed += need
            plan.admitted.append(head)
            plan.chunks.append(Chunk(head, chunk, 0))
            budget -= chunk

    def _dequeue(self) -> None:
        self._queue.popleft()
        self.waiting_count -= 1

    def complete(self, plan: StepPlan) -> list[Sequence]:
        if self.allocator.settle(plan.chunks):
            self._blocked = False
        sampled = []
        for chunk in plan.chunks:
            sequence = chunk.sequence
            if sequence.written == sequence.tokens:
                sequence.tokens += 1
                del self.prefilling[sequence.id]
                self.allocator.begin_decode(sequence)
                sampled.append(sequence)
        return sampled
