"""One engine with its own pool: it lets time pass between what the scheduler plans.

A replica is event-driven: an arrival, a cancellation and the end of a step are calls. Between an arrival that matters,
a finish and a block that cannot be had, decode steps are uniform, and the replica leaps over them at once; an event
that comes in the middle cuts the leap at the end of the step in progress. With `leaps` off it plans each step, and
reaches the same state, times and records, bit for bit.
"""

from collections.abc import Callable
from heapq import heappop, heappush

from simpy import Environment, Event

from kvsim.engine.check import Auditor
from kvsim.engine.clock import STEP_END, At
from kvsim.engine.recording import Recording
from kvsim.errors import CheckError, RunError
from kvsim.memory.interface import Leap
from kvsim.metrics.memory import Batch, Ramp
from kvsim.metrics.requests import Journey, allowed_output
from kvsim.request import Request, Sequence
from kvsim.scheduling.interface import Scheduler
from kvsim.step import PoolUse, Short, StepPlan
from kvsim.timing.interface import StepTiming


class Replica:
    """Serves requests on one pool.

    `reference_need` is the room in slots by which holes are judged while nothing waits. `progress_steps` is how many
    steps may pass without a token before the run is stopped with a diagnosis. `horizon_ps` starts no step any more.
    """

    def __init__(
        self,
        env: Environment,
        scheduler: Scheduler,
        timing: StepTiming,
        recording: Recording,
        *,
        max_model_len: int,
        reference_need: int,
        progress_steps: int,
        leaps: bool = True,
        horizon_ps: int | None = None,
        auditor: Auditor | None = None,
        on_end: Callable[[], None] | None = None,
    ) -> None:
        self.env = env
        self.scheduler = scheduler
        self.allocator = scheduler.allocator
        self.timing = timing
        self.recording = recording
        self.max_model_len = max_model_len
        self.live: dict[int, Journey] = {}
        self.end_ps = 0
        """When the last thing happened."""
        self._reference_need = reference_need
        self._progress_steps = progress_steps
        self._leaps = leaps
        self._horizon_ps = horizon_ps
        self._auditor = auditor
        self._on_end = on_end
        self._idle = True
        self._event: Event | None = None
        self._start_ps = 0
        self._plan: StepPlan | None = None
        self._leap: Leap | None = None
        self._leap_steps = 0
        self._ramp = Ramp(0, 0)
        self._external = 0
        self._batch = Batch(0, 0, 0, 0, 0, 0)
        self._finishes: list[tuple[int, int, Sequence]] = []
        """Heap of (decode clock, admission, sequence): who has emitted its last token when the clock gets there."""
        self._leaving: list[Journey] = []
        """Running requests whose client has gone; they leave at the end of the step."""
        self._silent_steps = 0

    # What comes from outside.

    def submit(self, request: Request) -> None:
        """A request arrives now."""
        now = self.env.now
        recording, allocator = self.recording, self.allocator
        allowed, limit = allowed_output(request, self.max_model_len)
        sequence = Sequence(
            request.id,
            request.prompt_tokens,
            request.max_tokens,
            request.arrival_ps,
            request.priority,
            request.tenant,
        )
        journey = Journey(request, sequence, allowed, limit)
        self.end_ps = now
        need = allocator.capacity(request.prompt_tokens)
        if request.prompt_tokens >= self.max_model_len or need > allocator.pool_slots:
            use = self._use()
            recording.rejected(now, journey, Short("never", need, use.free, use.largest_hole))
            self._ended()
            return
        recording.arrived(now, journey)
        self.live[request.id] = journey
        self.scheduler.submit(sequence)
        if request.patience_ps is not None:
            At(self.env, request.patience_ps, 1, lambda _: self.cancel(journey))
        if self._idle:
            self._idle = False
            self._schedule(0)
        elif not self.scheduler.stable_steps(1):
            self._cut()

    def cancel(self, journey: Journey) -> None:
        """The client of a request gives up now. One that waits ends at once, one that runs when the step is over."""
        if self.live.get(journey.request.id) is not journey:
            return
        self.end_ps = self.env.now
        if journey.sequence.id in self.scheduler.running:
            self._leaving.append(journey)
        else:
            self._end(journey, "cancelled")
        self._cut()

    def open_window(self) -> None:
        """The warm-up ends now, perhaps in the middle of a leap."""
        now = self.env.now
        over = 0 if self._leap is None else self._ramp.done_by(now - self._start_ps - 1, self._leap_steps)
        self.recording.open_window(now, over)

    def halt(self) -> None:
        """The horizon: what runs and what waits stays unfinished; the step in progress counts up to now."""
        now = self.env.now
        if self._plan is not None:
            self.recording.stopped(
                self._start_ps, now, self.allocator.decodes.clock, self.allocator.usage(), self._external, self._batch
            )
        elif self._leap is not None:
            done = self._ramp.done_by(now - self._start_ps, self._leap_steps)
            start = self._start_ps + self._ramp.until(done)
            if done:
                self._leap_steps = done
                self._finish_leap()
            if start < now:
                use = self.allocator.leap(1).use_at(0)
                self.recording.stopped(start, now, self.allocator.decodes.clock, use, self._external, self._batch)
        for journey in list(self.live.values()):
            self._end(journey, "unfinished")
        self.end_ps = now

    def _use(self) -> PoolUse:
        """Where the slots are now, in the middle of a leap too."""
        if self._leap is None:
            return self.allocator.usage()
        return self._leap.use_at(min(self._ramp.done_by(self.env.now - self._start_ps, self._leap_steps), self._leap_steps - 1))

    # Steps and leaps.

    def _schedule(self, delay_ps: int) -> None:
        self._event = At(self.env, delay_ps, STEP_END, self._step_over)

    def _step_over(self, event: Event) -> None:
        if event is not self._event:
            return
        if self._plan is not None:
            self._finish_step(self._plan)
            self._plan = None
        elif self._leap is not None:
            self._finish_leap()
            self._leap = None
        if self._leaving:
            for journey in self._leaving:
                if journey.request.id in self.live:
                    self._end(journey, "cancelled")
            self._leaving.clear()
        if self._auditor is not None:
            self._auditor.audit(self)
        self._begin()

    def _begin(self) -> None:
        now = self._start_ps = self.env.now
        if self._horizon_ps is not None and now >= self._horizon_ps:
            self._event = None
            return
        if self._leaps and self._begin_leap():
            return
        plan = self._next_plan(now)
        if plan is None:
            self._idle = True
            self._event = None
            return
        self._plan = plan
        duration = self.timing.step_ps(plan.decodes, plan.context, plan.chunks, plan.copied_slots)
        if duration < 1:
            raise CheckError(f"a step at {now} ps lasts {duration} ps: the clock must not stand still or step back")
        prefill, tokens = 0, plan.decodes
        for chunk in plan.chunks:
            prefill += chunk.tokens
            if chunk.written + chunk.tokens == chunk.sequence.tokens:
                tokens += 1
        self._take_levels(prefill, plan.decodes, plan.context, tokens)
        self._watch_progress(tokens)
        self._schedule(duration)

    def _begin_leap(self) -> bool:
        """Leap if nothing but decoding will happen for a while."""
        finish = self._next_finish()
        if finish is None:
            return False
        decodes = self.allocator.decodes
        limit = self.scheduler.stable_steps(finish - decodes.clock)
        if not limit:
            return False
        leap = self.allocator.leap(limit)
        if leap.steps < 1:
            return False
        base, slope = self.timing.decode(decodes.count)
        context = decodes.written + decodes.count
        self._leap, self._leap_steps = leap, leap.steps
        self._ramp = ramp = Ramp(base + slope * context, slope * decodes.count)
        if ramp.first_ps < 1:
            raise CheckError(f"a step at {self._start_ps} ps lasts {ramp.first_ps} ps: the clock must go forward")
        self._take_levels(0, decodes.count, context, decodes.count)
        self._schedule(ramp.until(leap.steps))
        return True

    def _take_levels(self, prefill: int, decodes: int, context: int, tokens: int) -> None:
        """What will be recorded of this step, as it is after the plan."""
        scheduler, allocator = self.scheduler, self.allocator
        if allocator.has_holes:
            head = scheduler.head
            need = self._reference_need if head is None else allocator.capacity(head.tokens)
            self._external = allocator.external(need)
        self._batch = Batch(prefill, decodes, context, scheduler.running_count, scheduler.waiting_count, tokens)

    def _cut(self) -> None:
        """Something happened that the leap in progress does not know of: end it with the step in progress."""
        if self._leap is None:
            return
        elapsed = self.env.now - self._start_ps
        steps = self._ramp.done_by(elapsed, self._leap_steps)
        if self._ramp.until(steps) < elapsed:
            steps += 1
        steps = max(steps, 1)
        if steps < self._leap_steps:
            self._leap_steps = steps
            self._schedule(self._ramp.until(steps) - elapsed)

    def _finish_leap(self) -> None:
        leap, steps, decodes = self._leap, self._leap_steps, self.allocator.decodes
        assert leap is not None
        self.recording.leapt(
            self._start_ps,
            self._ramp,
            steps,
            decodes.clock,
            leap,
            self._external,
            self._batch,
        )
        leap.apply(steps)
        self._finish_due([])

    def _finish_step(self, plan: StepPlan) -> None:
        now, recording = self.env.now, self.recording
        decodes = self.allocator.decodes
        recording.stepped(
            self._start_ps, now, decodes.clock, self.allocator.usage(), self._external, self._batch, plan, self.live
        )
        due = []
        for sequence in self.scheduler.complete(plan):
            journey = self.live[sequence.id]
            recording.sampled(now, journey)
            generated = sequence.tokens - sequence.prompt_tokens
            if generated == journey.allowed:
                due.append(sequence)
                continue
            finish = decodes.clock + journey.allowed - generated
            heappush(self._finishes, (finish, sequence.admission, sequence))
            self._expect_last_slots(journey)
        self._finish_due(due)

    def _expect_last_slots(self, journey: Journey) -> None:
        """Tell the recorder from which step on the sequence owns slots that it will never write."""
        sequence, end = journey.sequence, journey.written_in_all
        if self.allocator.owned(sequence) < end:
            clock = self.allocator.last_growth(end) - sequence.origin
            self.recording.memory.will_own(sequence, clock, self.allocator.capacity(end) - end)

    def _next_finish(self) -> int | None:
        heap = self._finishes
        while heap:
            clock, admission, sequence = heap[0]
            if sequence.decoding and sequence.admission == admission:
                return clock
            heappop(heap)
        return None

    def _finish_due(self, due: list[Sequence]) -> None:
        """Everyone that has emitted its last token leaves, in admission order."""
        clock = self.allocator.decodes.clock
        while self._next_finish() == clock:
            due.append(heappop(self._finishes)[2])
        if len(due) > 1:
            due.sort(key=lambda sequence: sequence.admission)
        for sequence in due:
            self._end(self.live[sequence.id], "finished")

    # Plans.

    def _next_plan(self, now: int) -> StepPlan | None:
        """The next plan that computes something; None when there is nothing to do."""
        scheduler = self.scheduler
        for _ in range(len(self.live) + 2):
            if not (scheduler.running_count or scheduler.waiting_count):
                return None
            plan = scheduler.plan()
            self._take_note(now, plan)
            if not plan.empty:
                return plan
        if not (scheduler.running_count or scheduler.waiting_count):
            return None
        raise RunError(self._diagnosis("the scheduler plans nothing although requests wait or run"))

    def _take_note(self, now: int, plan: StepPlan) -> None:
        """What happened while the plan was made."""
        recording, live, allocator = self.recording, self.live, self.allocator
        for sequence, short, outcome in plan.blocked:
            recording.blocked(now, live[sequence.id], short, outcome)
        for victim in plan.preempted:
            recording.preempted(now, live[victim.sequence.id], victim)
        for sequence in plan.aborted:
            self._end(live[sequence.id], "aborted", left=True)
        for sequence in plan.granted:
            live[sequence.id].blocked_cause = None
        for sequence in plan.admitted:
            recording.admitted(now, live[sequence.id])
        for chunk in plan.chunks:
            journey = live[chunk.sequence.id]
            recording.memory.owns(chunk.sequence, allocator.owned(chunk.sequence) - journey.written_in_all)
        recording.copied_slots += plan.copied_slots

    def _end(self, journey: Journey, end: str, *, left: bool = False) -> None:
        """A request ends now; with `left` the scheduler has already let it go."""
        sequence = journey.sequence
        if sequence.decoding:
            generated = sequence.origin + self.allocator.decodes.clock + 1 - sequence.prompt_tokens
        else:
            generated = sequence.tokens - sequence.prompt_tokens
        if not left:
            self.scheduler.leave(sequence)
        del self.live[sequence.id]
        self.end_ps = self.env.now
        self.recording.ended(self.env.now, journey, end, generated)
        self._ended()

    def _ended(self) -> None:
        if self._on_end is not None:
            self._on_end()

    def _watch_progress(self, tokens: int) -> None:
        self._silent_steps = 0 if tokens else self._silent_steps + 1
        if self._silent_steps > self._progress_steps:
            raise RunError(self._diagnosis(f"no token in {self._silent_steps} steps"))

    def _diagnosis(self, what: str) -> str:
        scheduler, use = self.scheduler, self.allocator.usage()
        head = scheduler.head
        queue = "nothing waits" if head is None else f"request {head.id} with {head.tokens} tokens heads the queue"
        return (
            f"the run makes no progress at {self.env.now / 1e12:.6f} s: {what}. {scheduler.running_count} running, "
            f"{scheduler.waiting_count} waiting, {queue}; {use.free} of {self.allocator.pool_slots} slots free, "
            f"largest hole {use.largest_hole}. A larger pool or smaller requests would help; if not, this is a bug"
        )
