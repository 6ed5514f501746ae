"""vLLM's scheduler before kvsim's engine: `RequestScheduler` with one batch in flight, or two (asynchronous)."""

from kvsim.memory.prefix import PrefixAllocator
from kvsim.request import Sequence
from kvsim.scheduling.following import FollowingScheduler
from kvsim.scheduling.vllm.batch import Batch
from kvsim.scheduling.vllm.rules import Rules
from kvsim.scheduling.vllm.scheduler import RequestScheduler
from kvsim.step import Blocked, Chunk, Rows, Short, StepPlan


class VllmScheduler(FollowingScheduler):
    """Follows the rules of one vLLM release; `allocator` is ahead of what is written by as many steps as `rules` say.

    No drafts are modelled: each sequence that decodes emits one token a step.
    """

    def __init__(self, allocator: PrefixAllocator, rules: Rules) -> None:
        if rules.draft_tokens:
            raise ValueError(f"draft_tokens is {rules.draft_tokens}; a run decodes one token a step")
        depth = 2 if rules.async_scheduling else 1
        if allocator.ahead != depth - 1:
            raise ValueError(f"the allocator is ahead by {allocator.ahead} steps; it must be {depth - 1}")
        super().__init__(allocator, depth=depth, max_num_batched_tokens=rules.max_num_batched_tokens)
        self.blocks = allocator
        self.rules = rules
        self._inner = RequestScheduler(allocator.holdings, rules)
        self._scheduled: dict[int, Sequence] = {}
        """What is scheduled of each live sequence, by its id."""
        self._batches: dict[StepPlan, Batch] = {}
        self._arrivals = 0

    @property
    def head(self) -> Sequence | None:
        waiting = self._inner.waiting
        return self._waiting[waiting.peek().sequence.id] if waiting else None

    def impossible(self, sequence: Sequence) -> Short | None:
        budget = self.rules.max_num_batched_tokens
        if self.rules.enable_chunked_prefill or sequence.tokens <= budget:
            return None
        return Short("activation", sequence.tokens, budget, budget)

    def silent_steps(self, longest_tokens: int) -> int:
        most = super().silent_steps(longest_tokens)
        if self.rules.long_prefill_token_threshold:
            most += 2 * -(-longest_tokens // self.rules.long_prefill_token_threshold)
        return most * self.rules.prefill_schedule_interval

    def stable_steps(self, limit: int) -> int:
        steps, head = super().stable_steps(limit), self.head
        if steps and head is not None and len(self.running) < self.rules.most_running:
            # It is tried again in each step, with what it finds cached by then.
            return self.blocks.hit_lasts(head, steps)
        return steps

    # Coming and going.

    def _submit(self, sequence: Sequence) -> None:
        # No two arrive at the same moment: they are told apart by the order in which they come.
        arrival, self._arrivals = self._arrivals, self._arrivals + 1
        scheduled = Sequence(sequence.id, sequence.prompt_tokens, sequence.max_tokens, arrival, sequence.priority)
        self._scheduled[sequence.id] = scheduled
        if len(self._waiting) == 1 or self.rules.policy != "fcfs":
            self._blocked = False
        self._inner.submit(scheduled, sequence.contents)

    def _leave(self, sequence: Sequence) -> None:
        self._inner.leave(self._scheduled.pop(sequence.id))
        self.blocks.count()

    # The step.

    def plan(self) -> StepPlan:
        plan, inner = StepPlan(), self._inner
        self._abort_outgrown(plan)
        batch = inner.plan()
        self._note_shortages(plan, batch)
        for request, hit_tokens in batch.admitted:
            sequence = self._waiting[request.sequence.id]
            self._starts(sequence)
            self.blocks.takes(sequence, request.holding, hit_tokens)
            plan.admitted.append(sequence)
        self.blocks.count()
        height = context = 0
        for row in batch.rows:
            scheduled, sequence = row.request.sequence, self.running[row.request.sequence.id]
            before = scheduled.written - row.tokens
            if sequence.decoding or before >= scheduled.tokens:
                height += 1
                context += before + 1
                if not sequence.decoding:
                    plan.ahead.append(sequence)
            else:
                plan.chunks.append(Chunk(sequence, row.tokens, before))
        plan.decodes, plan.rows = height, Rows(height, context)
        self._blocked = not (batch.preempted or plan.chunks or self.rules.prefill_schedule_interval > 1)
        if not plan.empty:
            self._flight.append(plan)
            self._batches[plan] = batch
        return plan

    def _abort_outgrown(self, plan: StepPlan) -> None:
        """Whoever heads the queue and has become too long for the pool can never run again."""
        blocks = self.blocks
        while (head := self.head) is not None and (need := blocks.capacity(head.tokens)) > blocks.most_slots:
            free = blocks.usage().free
            plan.blocked.append(Blocked(head, Short("outgrown", need, free, free), "abort"))
            plan.aborted.append(head)
            del self._waiting[head.id]
            self._leave(head)

    def _note_shortages(self, plan: StepPlan, batch: Batch) -> None:
        """Who could not get its slots, and who lost them for it.

        One that cannot grow although it is alone fails, unless a token is in flight for it: that may be its last.
        """
        size, outgrown = self.blocks.block_size, None
        for request, need_blocks, free_blocks, waits, alone in batch.unmet:
            sequence = (self._waiting if waits else self.running)[request.sequence.id]
            short = Short("capacity", need_blocks * size, free_blocks * size, free_blocks * size)
            if waits:
                plan.blocked.append(Blocked(sequence, short, "wait"))
            elif alone and not request.stale:
                plan.blocked.append(Blocked(sequence, short._replace(cause="outgrown"), "abort"))
                outgrown = sequence
            else:
                plan.blocked.append(Blocked(sequence, short, "preempt"))
        for request, _ in batch.preempted:
            sequence = self.running[request.sequence.id]
            self._loses(plan, sequence, fails=sequence is outgrown)
        if batch.preempted:
            plan.granted += [self.running[row.request.sequence.id] for row in batch.rows]

    def launched(self, plan: StepPlan) -> None:
        super().launched(plan)
        batch = self._batches[plan]
        stale = [row.request.sequence.id for row in batch.rows if row.request.stale and not row.request.ended]
        plan.late = [self._waiting[number] for number in stale if number in batch.samples]

    def complete(self, plan: StepPlan) -> list[Sequence]:
        self._landed(plan)
        late = [emitted.sequence.id for emitted in self._inner.complete(self._batches.pop(plan), {}) if emitted.stale]
        plan.late = [self._waiting[number] for number in late]
        for sequence in plan.late:
            sequence.tokens += 1
        return self._written(plan)

    def leapt(self, steps: int) -> None:
        super().leapt(steps)
        self._inner.leapt(steps)
