"""Drives one scheduler like an engine without a clock: arrivals and cancellations by step, ends by the true output.

It keeps its own books: who waits in which order, who runs, who has written and sampled how much.
"""

from collections.abc import Callable, Iterator
from random import Random
from typing import Any, NamedTuple

from kvsim.memory.contiguous import ContiguousAllocator
from kvsim.memory.interface import Allocator
from kvsim.memory.paged import PagedAllocator
from kvsim.memory.reserve import ReserveAllocator
from kvsim.request import Sequence
from kvsim.scheduling.interface import Scheduler
from kvsim.step import StepPlan
from kvsim.testing.promises import promise

MakeScheduler = Callable[[Allocator], Scheduler]


class Limits(NamedTuple):
    """What a scheduler was told, and how long requests may get."""

    max_num_seqs: int
    max_num_batched_tokens: int
    longest: int


class Call(NamedTuple):
    """A request: it comes before step `step`, and its client gives up before step `cancel` if that is not None."""

    step: int
    prompt: int
    output: int
    cancel: int | None = None
    max_tokens: int | None = None
    priority: int = 0


class Drive:
    """Subclasses watch `before_plan`, `planned` (before anything is computed), `completed` and `rest`."""

    def __init__(self, scheduler: Scheduler, calls: list[Call], limits: Limits) -> None:
        self.scheduler = scheduler
        self.allocator = scheduler.allocator
        self.limits = limits
        self.now = 0
        self.queue: list[Sequence] = []
        """Those that wait, the ones in host memory first."""
        self.running: list[Sequence] = []
        self.held: set[int] = set()
        """Running requests that have their whole output and have not been handed over."""
        self.swapped: set[int] = set()
        self.written: dict[int, int] = {}
        self.generated: dict[int, int] = {}
        self.ended: dict[int, str] = {}
        self.lost: dict[int, int] = {}
        """Written tokens that each request preempted by the last plan has lost."""
        self.queue_before: list[Sequence] = []
        self.running_before: list[Sequence] = []
        self.due: list[Sequence] = []
        """Those whose known tokens are all computed with the last step: they sample one."""
        self.silent = 0
        """Steps in a row without a token."""
        self._calls = dict(enumerate(calls))
        self._coming = sorted(self._calls, key=lambda number: self._calls[number].step)
        self._empty = 0
        self._decodes: set[int] = set()

    # To be watched.

    def arrived(self, sequence: Sequence) -> None:
        """It has been submitted."""

    def cancelled(self, sequence: Sequence) -> None:
        """Its client has given up."""

    def before_plan(self) -> None:
        """The next plan is about to be made."""

    def planned(self, plan: StepPlan) -> None:
        """A plan was made and is in the books; nothing is computed yet."""

    def completed(self, plan: StepPlan, sampled: list[Sequence]) -> None:
        """The step is over; nobody has left yet."""

    def rest(self) -> None:
        """Between two steps."""

    # The drive.

    @property
    def name(self) -> str:
        """What is driven, for messages."""
        return f"{type(self.scheduler).__name__} on {self.allocator.name}"

    def known(self, sequence: Sequence) -> int:
        """Its prompt and what it has generated."""
        return sequence.prompt_tokens + self.generated[sequence.id]

    def decoding(self) -> list[Sequence]:
        """The running requests that have sampled since their last admission and are not done, by these books."""
        return [s for s in self.working() if s.id in self._decodes]

    def working(self) -> list[Sequence]:
        """The running requests that are not done."""
        return [s for s in self.running if s.id not in self.held]

    def steps_to_a_finish(self) -> int:
        """Decode steps until the first of those that decode has its whole output."""
        left = [self._calls[s.id].output - self.generated[s.id] for s in self.decoding()]
        return min(left, default=0)

    def run(self) -> Iterator[None]:
        """To the end, or to a broken promise; yields after each step."""
        work = sum(call.prompt + call.output for call in self._calls.values())
        limit = 64 + 4 * len(self._calls) * work
        while self._coming or self.queue or self.running:
            self._step()
            self.rest()
            self.now += 1
            yield
            promise(self.now < limit, f"{self.name}: not everything ends: {self.now} steps for {work} tokens of work")

    def _step(self) -> None:
        while self._coming and self._calls[self._coming[0]].step <= self.now:
            number = self._coming.pop(0)
            call = self._calls[number]
            sequence = Sequence(number, call.prompt, call.max_tokens, call.step, call.priority, tokens=call.prompt)
            sequence.declared = self.scheduler.declare(sequence)
            need = self.allocator.capacity(max(call.prompt, sequence.declared))
            if need > self.allocator.pool_slots or self.scheduler.impossible(sequence):
                self.ended[number] = "rejected"
                continue
            self.queue.append(sequence)
            self.written[number] = self.generated[number] = 0
            self.scheduler.submit(sequence)
            self.arrived(sequence)
        for sequence in [*self.queue, *self.running]:
            cancel = self._calls[sequence.id].cancel
            if cancel is not None and cancel <= self.now:
                self.cancelled(sequence)
                self.end(sequence, "cancelled")
                self._hand_over()
        self.queue_before, self.running_before = list(self.queue), list(self.running)
        if not (self.queue or self.running):
            return
        self.before_plan()
        plan = self.scheduler.plan()
        self._book(plan)
        self.planned(plan)
        self._hand_over()
        self._empty = self._empty + 1 if plan.empty and not plan.aborted else 0
        promise(
            self._empty <= 2 + len(self.queue) + len(self.running),
            f"{self.name}: not everything ends: nothing is planned although {len(self.queue)} requests wait and "
            f"{len(self.running)} run",
        )
        if not plan.empty:
            self._compute(plan)

    def _book(self, plan: StepPlan) -> None:
        self.lost.clear()
        for victim in plan.preempted:
            number = victim.sequence.id
            self._out_of(self.running, victim.sequence, "preempted", "run")
            self.lost[number] = self.written[number]
            if victim.swapped_tokens:
                # It goes on where it was: what it has sampled and written stays.
                self.swapped.add(number)
                self.queue.insert(0, victim.sequence)
                continue
            self.queue.insert(len(self.swapped), victim.sequence)
            self.written[number] = 0
            self._decodes.discard(number)
        for sequence in plan.aborted:
            room = self.running if sequence in self.running else self.queue
            self._out_of(room, sequence, "aborted", "wait or run")
            self.ended[sequence.id] = "aborted"
        for sequence in (*plan.resumed, *plan.admitted):
            self._out_of(self.queue, sequence, "admitted", "wait")
            self.running.append(sequence)
            if self.generated[sequence.id] and self.written[sequence.id] + 1 == self.known(sequence):
                self._decodes.add(sequence.id)

    def _out_of(self, room: list[Sequence], sequence: Sequence, what: str, must: str) -> None:
        promise(
            sequence in room,
            f"{self.name}: requests are not conserved: {sequence.id} is {what} and does not {must}",
        )
        room.remove(sequence)
        if room is self.queue:
            self.swapped.discard(sequence.id)

    def _compute(self, plan: StepPlan) -> None:
        decoding = [] if plan.stalled else self.decoding()
        for chunk in plan.chunks:
            self.written[chunk.sequence.id] += chunk.tokens
        self.due = [c.sequence for c in plan.chunks if self.written[c.sequence.id] == self.known(c.sequence)]
        sampled = self.scheduler.complete(plan)
        for sequence in decoding:
            self.written[sequence.id] += 1
        for sequence in [*decoding, *self.due]:
            self.generated[sequence.id] += 1
            self._decodes.add(sequence.id)
        self.silent = 0 if decoding or self.due else self.silent + 1
        self.completed(plan, sampled)
        for sequence in self.working():
            if self.generated[sequence.id] == self._calls[sequence.id].output:
                self.held.add(sequence.id)
                self.scheduler.finish(sequence)
        self._hand_over()

    def _hand_over(self) -> None:
        for sequence in self.scheduler.done():
            promise(
                sequence in self.running and sequence.id in self.held,
                f"{self.name}: requests are not conserved: {sequence.id} is handed over and has not just finished",
            )
            self.end(sequence, "finished")

    def end(self, sequence: Sequence, end: str) -> None:
        """It leaves: finished or cancelled."""
        self.scheduler.leave(sequence)
        (self.running if sequence in self.running else self.queue).remove(sequence)
        for numbers in (self.held, self.swapped, self._decodes):
            numbers.discard(sequence.id)
        self.ended[sequence.id] = end


def summary(plan: StepPlan) -> dict[str, Any]:
    """A plan in plain values."""
    return {
        "chunks": [(c.sequence.id, c.tokens, c.written) for c in plan.chunks],
        "decodes": plan.decodes,
        "context": plan.context,
        "copied_slots": plan.copied_slots,
        "stalled": plan.stalled,
        "moved": (plan.mapped_pages, plan.gathered_slots, plan.swapped_slots),
        "admitted": [s.id for s in plan.admitted],
        "resumed": [s.id for s in plan.resumed],
        "preempted": [(v.sequence.id, *v[1:]) for v in plan.preempted],
        "aborted": [s.id for s in plan.aborted],
        "blocked": [(b.sequence.id, b.short, b.outcome) for b in plan.blocked],
        "granted": [s.id for s in plan.granted],
    }


def random_calls(random: Random, limits: Limits) -> list[Call]:
    """A crowd whose arrivals often coincide; some are impatient."""
    calls, step = [], 0
    for _ in range(24):
        step += random.choice([0, 0, 0, 1, 5, 20])
        prompt = random.randint(1, random.randint(1, limits.longest - 1))
        output = random.randint(1, limits.longest - prompt)
        cancel = step + random.randint(1, 60) if random.random() < 0.15 else None
        limit = random.choice([None, random.randint(output, limits.longest - prompt)])
        calls.append(Call(step, prompt, output, cancel, limit, random.randint(0, 2)))
    return calls


def pools(longest: int) -> Iterator[Callable[[], Allocator]]:
    """Pools that are short, fragmented or ample, from less than the longest request to many of them."""
    for share in (0.7, 1, 1.6, 3, 12):
        slots = max(16, int(share * longest))
        yield lambda n=slots: PagedAllocator(n, block_size=1)  # type: ignore[misc]
        yield lambda n=slots: PagedAllocator(n, block_size=16, watermark=0.1)  # type: ignore[misc]
        yield lambda n=slots: ContiguousAllocator(n, chunk=4)  # type: ignore[misc]
        yield lambda n=slots: ReserveAllocator(n, max_model_len=longest)  # type: ignore[misc]


def drives(kind: type[Drive], make: MakeScheduler, limits: Limits) -> Iterator[Drive]:
    """A drive of one kind over every pool; yields it before its first step."""
    for seed, fresh in enumerate(pools(limits.longest)):
        yield kind(make(fresh()), random_calls(Random(seed), limits), limits)


def drive(kind: type[Drive], make: MakeScheduler, limits: Limits) -> Iterator[Drive]:
    """The same, run to the end; yields it after each step."""
    for driver in drives(kind, make, limits):
        for _ in driver.run():
            yield driver
