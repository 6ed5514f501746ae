"""The work: within the limits, nobody left out, nothing computed twice, nothing and nobody lost."""

from kvsim.request import Sequence
from kvsim.step import Ask, Short, StepPlan
from kvsim.testing.promises import promise
from kvsim.testing.schedulers.drive import Drive, Limits, MakeScheduler, drive, drives


class _Budgeting(Drive):
    def planned(self, plan: StepPlan) -> None:
        tokens = plan.decodes + sum(tokens for tokens, _ in plan.padded_chunks)
        budget, seqs = self.limits.max_num_batched_tokens, self.limits.max_num_seqs
        promise(tokens <= budget, f"{self.name}: a step computes {tokens} tokens, max_num_batched_tokens is {budget}")
        count = self.scheduler.running_count
        promise(count <= seqs, f"{self.name}: {count} requests run, max_num_seqs is {seqs}")


def the_limits_hold(make: MakeScheduler, limits: Limits) -> None:
    """Neither the token budget of a step, padding of prompts included, nor max_num_seqs is ever exceeded."""
    for _ in drive(_Budgeting, make, limits):
        pass


class _Decoding(Drive):
    def planned(self, plan: StepPlan) -> None:
        ours = self.decoding()
        if plan.stalled:
            promise(bool(plan.chunks), f"{self.name}: a decoding request is left out, and no prompt is computed for it")
            ours = []
        promise(
            plan.decodes == len(ours),
            f"{self.name}: a decoding request is left out: {len(ours)} decode, the plan has {plan.decodes}",
        )
        lengths = [self.written[s.id] + 1 for s in ours]
        height, context, _ = plan.rows
        padded = height >= len(ours) and context % max(height, 1) == 0 and context >= height * max(lengths, default=0)
        promise(
            context == sum(lengths) or padded,
            f"{self.name}: the plan's context has {context} tokens in {height} rows, the decoding requests attend to "
            f"{sum(lengths)}, the longest to {max(lengths, default=0)}",
        )


def nobody_that_decodes_is_left_out(make: MakeScheduler, limits: Limits) -> None:
    """Whoever has sampled a token gets the next one in every step, until it ends or is preempted.

    It may stand still while a step computes prompts and says so; and it may be padded to the longest.
    """
    for _ in drive(_Decoding, make, limits):
        pass


class _Prompting(Drive):
    def planned(self, plan: StepPlan) -> None:
        for victim in plan.preempted:
            lost, sequence = self.lost[victim.sequence.id], victim.sequence
            told = f"{self.name}: preempted request {sequence.id}"
            gone = victim.lost_tokens + victim.swapped_tokens
            promise(gone == lost, f"{told} had written {lost} tokens, {gone} are told to be lost or swapped")
            promise(self.allocator.owned(sequence) == 0, f"{told} still owns slots")
        seen = set()
        for sequence, tokens, written in plan.chunks:
            told = f"{self.name}: a chunk of {tokens} tokens after {written}"
            promise(sequence in self.running, f"{told} is for request {sequence.id}, which does not run")
            promise(sequence.id not in seen, f"{told} is the second for request {sequence.id} in one step")
            seen.add(sequence.id)
            ours = self.written[sequence.id]
            promise(written == ours, f"{told} does not follow the {ours} tokens that are written")
            known = self.known(sequence)
            promise(0 < tokens <= known - written, f"{told} does not lie within the {known} known tokens")
            owned = self.allocator.owned(sequence)
            promise(owned >= written + tokens, f"{told} has no room: request {sequence.id} owns {owned} slots")

    def completed(self, plan: StepPlan, sampled: list[Sequence]) -> None:
        ours, theirs = [s.id for s in self.due], [s.id for s in sampled]
        promise(ours == theirs, f"{self.name}: complete says that {theirs} sampled a first token, it should be {ours}")


def chunks_follow_the_known_tokens(make: MakeScheduler, limits: Limits) -> None:
    """Each known token is computed once, in order, in slots that its request owns; a preempted one starts again."""
    for _ in drive(_Prompting, make, limits):
        pass


class _Working(Drive):
    def planned(self, plan: StepPlan) -> None:
        left = self.limits.max_num_batched_tokens - plan.decodes - sum(tokens for tokens, _ in plan.padded_chunks)
        busy = {chunk.sequence.id for chunk in plan.chunks} | {s.id for s in self.decoding()}
        idle = [s.id for s in self.working() if s.id not in busy]
        promise(
            not idle or left == 0 or bool(plan.preempted),
            f"{self.name}: work waits that could be done: {idle} run and get nothing, {left} tokens of budget are left",
        )
        head = self.scheduler.head
        if head is None or plan.preempted or len(self.running) >= self.limits.max_num_seqs:
            return
        if plan.rectangle and (plan.aborted or plan.resumed):
            # Whole prompts are admitted before anybody grows or comes back; what changes then is too late for it.
            return
        known = self.known(head)
        padding = 0
        if plan.rectangle and plan.chunks:
            longest, _ = plan.padded_chunks[0]
            padding = max(0, longest - known) + max(0, known - longest) * len(plan.chunks)
        if known + padding <= left:
            got = self.allocator.acquire((Ask(head, known, True, known, not self.running),))
            promise(
                isinstance(got, Short),
                f"{self.name}: work waits that could be done: request {head.id} with {known} tokens heads the queue, "
                f"{left} tokens of budget are left, {len(self.running)} run and its memory can be had",
            )


def no_work_waits_that_could_be_done(make: MakeScheduler, limits: Limits) -> None:
    """The head of the queue waits only for budget, max_num_seqs or memory; who runs waits only for budget."""
    for _ in drive(_Working, make, limits):
        pass


class _Ending(Drive):
    def rest(self) -> None:
        limit = self.scheduler.silent_steps(self.limits.longest)
        promise(self.silent <= limit, f"{self.name}: {self.silent} steps without a token, silent_steps allows {limit}")


def everything_ends(make: MakeScheduler, limits: Limits) -> None:
    """Every request ends, whatever the pool; steps without a token stay within silent_steps; nothing is left behind."""
    for driver in drives(_Ending, make, limits):
        for _ in driver.run():
            pass
        use = driver.allocator.usage()
        promise(
            use.free == driver.allocator.pool_slots,
            f"{driver.name}: everything has ended and the pool is not empty: {use}",
        )


class _Conserving(Drive):
    def rest(self) -> None:
        scheduler, told = self.scheduler, f"{self.name}: requests are not conserved: "
        live = scheduler.live()
        ours, theirs = sorted(s.id for s in [*self.queue, *self.running]), sorted(s.id for s in live)
        promise(ours == theirs, f"{told}live() has {theirs}, in the system are {ours}")
        running = sorted(scheduler.running)
        promise(running == sorted(s.id for s in self.running), f"{told}running is {running}, not {self.running}")
        counts = scheduler.waiting_count, scheduler.running_count
        right = len(self.queue), len(self.running)
        promise(counts == right, f"{told}{counts} wait and run by its counts, really {right}")
        self.allocator.audit(live)
        for sequence in self.queue:
            promise(not self.allocator.owned(sequence), f"{told}request {sequence.id} waits and owns slots")
        used = sum(self.written[s.id] for s in self.running)
        use = self.allocator.usage()
        promise(
            use.used + use.dead == used,
            f"{self.name}: slots are not conserved: {use} with {used} tokens written",
        )

    def end(self, sequence: Sequence, end: str) -> None:
        free = self.allocator.usage().free + self.allocator.owned(sequence)
        super().end(sequence, end)
        back = self.allocator.usage().free
        promise(back == free, f"{self.name}: slots are not conserved: {free} should be free after a leave, {back} are")


def requests_and_slots_are_conserved(make: MakeScheduler, limits: Limits) -> None:
    """Each request waits, runs or has ended, and is counted so; who does not run owns nothing."""
    for _ in drive(_Conserving, make, limits):
        pass
