"""One step after another as vLLM's scheduler decides them: rules 10 to 22 of vLLM 0.33.

A step knows no phases: each request is scheduled for what it lacks of its known tokens, of those that batches in flight
will yield, and of its drafts. Running requests come first, in the order of their admission, then waiting ones while
budget, seats and memory allow.
"""

from collections.abc import Mapping

from kvsim.content import Content
from kvsim.memory.prefix import Hit, Holdings, Want
from kvsim.request import Sequence
from kvsim.scheduling.batching.queueing import UNLIMITED
from kvsim.scheduling.vllm.batch import Admitted, Batch, Emitted, Followed, Lost, Row, Unmet
from kvsim.scheduling.vllm.cadence import PrefillCadence
from kvsim.scheduling.vllm.queues import QUEUES, WaitingQueue
from kvsim.scheduling.vllm.rules import Rules


class RequestScheduler:
    """Owns the queue and the running requests, and gets and gives back their blocks in `holdings`."""

    def __init__(self, holdings: Holdings, rules: Rules) -> None:
        self.rules = rules
        self.holdings = holdings
        self.running: list[Followed] = []
        """In the order of their admission."""
        self.waiting: WaitingQueue = QUEUES[rules.policy]()
        self._followed: dict[int, Followed] = {}
        self._cadence = PrefillCadence(rules.prefill_schedule_interval)

    # Coming and going.

    def submit(self, sequence: Sequence, content: Content) -> None:
        """A new request joins the queue. `content` covers its prompt and all that it may ever generate. Mutates."""
        sequence.tokens = sequence.prompt_tokens
        request = Followed(sequence, self.holdings.open(content, sequence.prompt_tokens, owner=sequence.id))
        self._followed[sequence.id] = request
        self.waiting.push(request)

    def leave(self, sequence: Sequence) -> None:
        """A live request has ended, or its client is gone: what is in flight for it is lost. Mutates."""
        request = self._followed.pop(sequence.id)
        request.ended = True
        if request.running:
            self.running.remove(request)
        else:
            self.waiting.remove(request)
        self.holdings.release(request.holding)

    # Deciding a step.

    def plan(self) -> Batch:
        """Decide the next step and get its memory. Mutates; O(running)."""
        batch = Batch()
        hold = self._cadence.holds(self.running)
        most_tokens = self._most_tokens_each()
        budget, prefill = self._extend(batch, most_tokens, hold)
        if not batch.preempted:
            prefill = self._admit(batch, budget, most_tokens, hold, prefill)
            if not hold:
                self._cadence.released(self.waiting)
        self._cadence.scheduled(tokens=bool(batch.rows), prefill=prefill)
        for row in batch.rows:
            self._scheduled(batch, row)
        return batch

    def _most_tokens_each(self) -> int:
        """Tokens of one request in this step."""
        rules, present = self.rules, len(self.running) + len(self.waiting)
        if not rules.long_prefill_token_threshold or present < 2:
            return UNLIMITED
        if rules.long_prefill_adaptive:
            return max(rules.long_prefill_token_threshold, rules.max_num_batched_tokens // present)
        return rules.long_prefill_token_threshold

    def _extend(self, batch: Batch, most_tokens: int, hold: bool) -> tuple[int, bool]:
        """Schedule the running ones: the budget left, and whether any was in the middle of a prompt."""
        running, priority = self.running, self.rules.policy == "priority"
        budget, prefill, place = self.rules.max_num_batched_tokens, False, 0
        while place < len(running) and budget > 0:
            request = running[place]
            tokens = min(self._lacking(request), most_tokens, budget)
            if tokens <= 0 or (hold and request.prefilling):
                place += 1
                continue
            while request.running and not self._more(request, tokens):
                self._unmet(batch, request, self._want_more(request, tokens))
                victim = max(running, key=_lateness) if priority else running[-1]
                place -= running.index(victim) < place
                budget += self._unschedule(batch, victim)
                self._preempt(batch, victim)
            if request.running:
                batch.rows.append(Row(request, tokens, self._drafts_within(request, tokens)))
                prefill |= request.prefilling
                budget -= tokens
                place += 1
            elif not priority:
                # Whoever came later has been preempted before it.
                break
        return budget, prefill

    def _lacking(self, request: Followed) -> int:
        """Tokens that it could compute in this step."""
        rules, sequence = self.rules, request.sequence
        # Even if all drafts in flight are rejected, it has its last token when they are in.
        sure = sequence.written + 2 - request.placeholders
        if request.placeholders and sure >= sequence.prompt_tokens + self._most_output(sequence):
            return 0
        tokens = sequence.tokens + request.drafts + request.placeholders - sequence.written
        return min(tokens, rules.max_model_len - 1 - sequence.written)

    def _most_output(self, sequence: Sequence) -> int:
        return self.rules.max_model_len if sequence.max_tokens is None else sequence.max_tokens

    def _more(self, request: Followed, tokens: int) -> bool:
        """Get the slots for `tokens` tokens more of a running request."""
        return self.holdings.acquire(request.holding, self._want_more(request, tokens))

    def _want_more(self, request: Followed, tokens: int) -> Want:
        sequence = request.sequence
        return Want(
            sequence.written,
            tokens,
            sequence.tokens,
            lookahead_tokens=self.rules.lookahead_tokens,
            in_flight_tokens=request.in_flight,
        )

    def _unmet(self, batch: Batch, request: Followed, want: Want, hit: Hit | None = None) -> None:
        """Note that what it wants is not there; `hit` is given for one that waits."""
        need, free = self.holdings.lacking(request.holding, want, hit), self.holdings.pool.free_blocks
        batch.unmet.append(Unmet(request, need, free, hit is not None, len(self.running) == 1))

    def _drafts_within(self, request: Followed, tokens: int) -> int:
        """How many of the next `tokens` tokens are drafts; those left out are forgotten."""
        sequence = request.sequence
        past = tokens + sequence.written - sequence.tokens - request.placeholders
        drafts, request.drafts = request.drafts, 0
        return max(0, min(drafts, past))

    def _unschedule(self, batch: Batch, victim: Followed) -> int:
        """Take a request out of the batch again; the budget that comes back."""
        for row in batch.rows:
            if row.request is victim:
                batch.rows.remove(row)
                return row.tokens
        return 0

    def _preempt(self, batch: Batch, victim: Followed) -> None:
        sequence = victim.sequence
        batch.preempted.append(Lost(victim, sequence.written))
        self.running.remove(victim)
        self.holdings.release(victim.holding)
        victim.running = False
        victim.drafts = victim.placeholders = sequence.written = 0
        victim.stale = victim.in_flight
        self.waiting.push_front((victim,))

    def _admit(self, batch: Batch, budget: int, most_tokens: int, hold: bool, prefill: bool) -> bool:
        """Let in who waits, in order; whether the step computes prompts now."""
        rules, waiting, continued = self.rules, self.waiting, prefill
        extended = bool(batch.rows)
        aside = []
        while budget > 0 and waiting and len(self.running) < rules.most_running:
            request = waiting.peek()
            if request.stale:
                request.set_aside = True
                aside.append(waiting.pop())
                continue
            hit = self.holdings.hit(request.holding, request.sequence.tokens)
            missing = request.sequence.tokens - hit.tokens
            if hold and missing > 1:
                break
            drafts = 0
            if missing == 1 and not continued and (extended or hit.tokens) and self._draftable(hit):
                # It decodes from the start, in step with the others: with as many drafts as they have.
                drafts = rules.draft_tokens
                if 1 + drafts > budget:
                    break
            tokens = min(missing + drafts, most_tokens)
            if tokens > budget and not rules.enable_chunked_prefill:
                break
            tokens = min(tokens, budget)
            if not self._enter(batch, request, hit, tokens):
                break
            batch.admitted.append(Admitted(request, hit.tokens))
            batch.rows.append(Row(request, tokens, min(drafts, tokens - 1)))
            budget -= tokens
            prefill |= missing > 1
        waiting.push_front(aside)
        return prefill

    def _draftable(self, hit: Hit) -> bool:
        """The model's limit leaves room for drafts and the token after them."""
        return hit.tokens + 2 + self.rules.draft_tokens <= self.rules.max_model_len

    def _enter(self, batch: Batch, request: Followed, hit: Hit, tokens: int) -> bool:
        """The head of the queue runs from now on, if there is memory."""
        rules = self.rules
        want = Want(
            hit.tokens,
            tokens,
            request.sequence.tokens,
            lookahead_tokens=rules.lookahead_tokens,
            gate_tokens=request.sequence.tokens if rules.reserve_full_isl else 0,
            spare_blocks=rules.watermark_blocks if self.running else 0,
        )
        if not self.holdings.acquire(request.holding, want, hit):
            self._unmet(batch, request, want, hit)
            return False
        self.running.append(self.waiting.pop())
        request.running, request.set_aside = True, False
        request.sequence.written = hit.tokens
        return True

    def _scheduled(self, batch: Batch, row: Row) -> None:
        """What is scheduled counts as computed from here on."""
        request, sequence = row.request, row.request.sequence
        sequence.written += row.tokens
        request.in_flight += row.tokens
        request.prefilling = sequence.written < sequence.tokens + request.placeholders
        if request.prefilling:
            return
        batch.samples.add(sequence.id)
        if self.rules.async_scheduling:
            request.placeholders += 1 + row.drafts
            request.drafts = self.rules.draft_tokens

    def leapt(self, steps: int) -> None:
        """So many steps are over in which every running request decoded one token; blocks are up to date. Mutates."""
        for request in self.running:
            request.sequence.written += steps
            request.sequence.tokens += steps
        self._cadence.leapt(steps)

    # The output of a step.

    def complete(self, batch: Batch, accepted: Mapping[int, int]) -> list[Emitted]:
        """The output of a batch has come: `accepted` drafts by sequence id. What each request has yielded. Mutates.

        Whoever has reached its `max_tokens` or the model's limit, or else has ended, is to `leave` then.
        """
        emitted = []
        for row in batch.rows:
            request = row.request
            request.in_flight -= row.tokens
            stale = request.stale > 0
            if stale:
                request.stale -= row.tokens
            if not request.ended and request.sequence.id in batch.samples:
                right = min(row.drafts, accepted.get(request.sequence.id, 0))
                emitted.append(self._yield(request, row.drafts, right, stale))
        if not self.rules.async_scheduling:
            for row in batch.rows:
                row.request.drafts = 0 if row.request.prefilling else self.rules.draft_tokens
        return emitted

    def _yield(self, request: Followed, drafts: int, right: int, stale: bool) -> Emitted:
        """`right` of its drafts were accepted, and one token follows them."""
        rules, sequence = self.rules, request.sequence
        generated = sequence.tokens - sequence.prompt_tokens
        room = min(self._most_output(sequence) - generated, rules.max_model_len - sequence.tokens)
        tokens = min(1 + right, room)
        sequence.tokens += tokens
        if not stale:
            late = request.placeholders > 0
            # Back to what is known: without rejected drafts, and without what lies behind the end.
            sequence.written -= drafts - right + (1 + right - tokens)
            if late:
                request.placeholders -= 1 + drafts
            if late or rules.draft_tokens:
                processed = sequence.written - request.in_flight
                self.holdings.store(request.holding, min(processed, sequence.tokens))
        return Emitted(sequence, tokens, tokens == room, stale)


def _lateness(request: Followed) -> tuple[int, int]:
    """Who gives way first by priority: the highest; among equals the first admitted (`max` keeps the first)."""
    return request.sequence.priority, request.sequence.arrival_ps
