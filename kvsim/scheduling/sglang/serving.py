"""SGLang's scheduler before kvsim's engine: passes with one batch in flight, or two (overlap)."""

from kvsim.content import Content
from kvsim.memory.radix.interface import PrefixTree
from kvsim.request import Sequence
from kvsim.scheduling.following import FollowingScheduler
from kvsim.scheduling.sglang.books import RowBooks
from kvsim.scheduling.sglang.request import Request, most_output
from kvsim.scheduling.sglang.scheduler import Pass, SglangScheduler
from kvsim.scheduling.sglang.settings import Settings
from kvsim.step import Blocked, Chunk, Rows, Short, StepPlan


class SglangServing(FollowingScheduler):
    """Follows the rules of one SGLang release over `tree`; `max_model_len` is its context length."""

    def __init__(self, tree: PrefixTree, settings: Settings, *, max_model_len: int, eviction: str = "lru") -> None:
        self._inner = SglangScheduler(tree, settings, eviction=eviction)
        depth = 2 if settings.overlap else 1
        budget = settings.chunked_prefill_size or settings.max_prefill_tokens
        self.books = RowBooks(self._inner.rows, ahead=depth - 1)
        super().__init__(self.books, depth=depth, max_num_batched_tokens=budget)
        self.settings = settings
        self.max_model_len = max_model_len
        self._requests: dict[int, Request] = {}
        self._served: list[tuple[Request, bool]] = []
        """Whose result is in, and not yet dealt with: the engine says first for whom it was the last."""

    @property
    def head(self) -> Sequence | None:
        waiting = self._inner.waiting
        return self._waiting[int(waiting[0].name)] if waiting else None

    def impossible(self, sequence: Sequence) -> Short | None:
        if self.most_output(sequence) > 0:
            return None
        pool = self.books.pool
        return Short("never", pool.ceil(sequence.prompt_tokens) + pool.page_size + 2, pool.slots, pool.slots)

    def most_output(self, sequence: Sequence) -> int:
        """SGLang leaves a request no more than the context and the empty pool have room for."""
        return most_output(sequence.prompt_tokens, self.max_model_len, self.books.pool)

    def stable_steps(self, limit: int) -> int:
        # What a prompt has left is handed over to the tree when the next pass is planned.
        inner = self._inner
        steady = inner.steady and not inner.ages and not any(prompt_done for _, prompt_done in self._served)
        return super().stable_steps(limit) if steady else 0

    # Coming and going.

    def _submit(self, sequence: Sequence) -> None:
        prompt = sequence.prompt_tokens
        contents = sequence.contents
        (output,) = contents.part(prompt, prompt + 1)
        most = self.most_output(sequence)
        request = Request(
            name=str(sequence.id),
            content=Content(contents.part(0, prompt)),
            prompt_tokens=prompt,
            max_new=most if sequence.max_tokens is None else min(most, sequence.max_tokens),
            output=output,
            priority=sequence.priority,
        )
        if not self._requests:
            self._inner.ratio.reset()
        self._requests[sequence.id] = request
        self._inner.submit(request)

    def finish(self, sequence: Sequence) -> None:
        super().finish(sequence)
        self._requests[sequence.id].finished = True

    def flush(self) -> bool:
        """SGLang refuses while anybody waits as well (`Scheduler.flush_cache`)."""
        return not self._waiting and super().flush()

    def done(self) -> list[Sequence]:
        self._deal_with_results()
        return super().done()

    def _deal_with_results(self) -> None:
        served, self._served = self._served, []
        self._inner.keep(served)

    def _leave(self, sequence: Sequence) -> None:
        self._deal_with_results()
        self._inner.leave(self._requests.pop(sequence.id))
        self.books.count()

    # The step.

    def plan(self) -> StepPlan:
        self._deal_with_results()
        inner, plan = self._inner, StepPlan()
        made = inner.plan()
        self._note_losses(plan, made)
        for request, hit_tokens in made.admitted:
            sequence = self._waiting[int(request.name)]
            self._starts(sequence)
            self.books.takes(sequence, request, hit_tokens)
            plan.admitted.append(sequence)
        height = context = 0
        prefill_tokens = made.prefill_tokens
        for request, tokens in made.scheduled:
            sequence = self.running[int(request.name)]
            if prefill_tokens:
                prefill_tokens -= tokens
                plan.chunks.append(Chunk(sequence, tokens, request.prefix))
            else:
                height += 1
                context += request.committed
                if not sequence.decoding:
                    plan.ahead.append(sequence)
        plan.decodes, plan.rows, plan.stalled = height, Rows(height, context), made.mode == "prefill"
        self._blocked = inner.running.full
        if made.short is not None:
            sequence, need, room = self._waiting[int(made.short.request.name)], *made.short[1:]
            plan.blocked.append(Blocked(sequence, Short("capacity", need, room, room), "wait"))
        self.books.count()
        if not plan.empty:
            self._flight.append(plan)
        return plan

    def _note_losses(self, plan: StepPlan, made: Pass) -> None:
        """Who had to give up its slots so that the others can decode; one that is left alone fails."""
        if made.lacking is None:
            return
        need, free = made.lacking
        short = Short("capacity", need, free, free)
        for request in made.retracted + made.aborted:
            sequence, fails = self.running[int(request.name)], request in made.aborted
            if fails:
                plan.blocked.append(Blocked(sequence, short._replace(cause="outgrown"), "abort"))
            else:
                plan.blocked.append(Blocked(sequence, short, "preempt"))
            self._loses(plan, sequence, fails=fails)

    def complete(self, plan: StepPlan) -> list[Sequence]:
        self._landed(plan)
        self._served = self._inner.output()
        return self._written(plan)

    def leapt(self, steps: int) -> None:
        super().leapt(steps)
        # Those who end by it hand over to the tree in the order of the batch, which need not be that of admission.
        self._served = self._inner.leapt(steps)
