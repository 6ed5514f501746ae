"""One engine with its own pool: it lets time pass between what the scheduler plans.

A replica is event-driven: an arrival, a cancellation and the end of a step are calls. Between an arrival that matters,
a finish and a block that cannot be had, decode steps are uniform, and the replica leaps over them at once; an event
that comes in the middle cuts the leap at the end of the step in progress. With `leaps` off it plans each step, and
reaches the same state, times and records, bit for bit.
"""

import sys
from collections.abc import Callable

from simpy import Event

from kvsim.engine.ahead import Foresight
from kvsim.engine.check import Auditor
from kvsim.engine.clock import ARRIVAL, STEP_END, At, Clock
from kvsim.engine.live import LiveRequests, OnEnd, Over, first_need
from kvsim.engine.recording import Recording
from kvsim.engine.steps import Flight, Plans, ProgressWatch, Takeoff
from kvsim.errors import CheckError
from kvsim.metrics.requests import Journey, entering
from kvsim.request import Request
from kvsim.scheduling.interface import Scheduler
from kvsim.step import PoolUse, Short, StepPlan
from kvsim.timing.interface import StepTiming


class Replica:
    """Serves requests on one pool.

    `reference_need` is the room in slots by which holes are judged while nothing waits. From `horizon_ps` on no step
    starts any more. A request that comes while `max_queued` sequences wait is rejected (None: no limit). `auditor`
    counts everything again after each step; `on_end` is called with the record of each request that has ended, and then
    `over` with the request: it gives the ids of those whose own tokens nobody will come with any more.
    `number` tells replicas of a fleet apart: at one moment their steps end in this order.
    """

    def __init__(
        self,
        clock: Clock,
        scheduler: Scheduler,
        timing: StepTiming,
        recording: Recording,
        *,
        max_model_len: int,
        reference_need: int,
        leaps: bool = True,
        horizon_ps: int | None = None,
        max_queued: int | None = None,
        auditor: Auditor | None = None,
        on_end: OnEnd | None = None,
        over: Over | None = None,
        number: int = 0,
    ) -> None:
        self.clock = clock
        self._number = number
        self.scheduler = scheduler
        self.allocator = scheduler.allocator
        self.recording = recording
        self.max_model_len = max_model_len
        self._addresses = recording.addresses
        self.exhausted = False
        """No more requests will come."""
        self._leaps = leaps
        self._horizon_ps = horizon_ps
        self._max_queued = sys.maxsize if max_queued is None else max_queued
        self._auditor = auditor
        self._progress = ProgressWatch(scheduler, scheduler.silent_steps(max_model_len))
        self._flight: Flight | None = None
        self._next: Event | None = None
        """The event at which the flight ends, or an idle replica wakes; any other has been overtaken."""
        self._planned: StepPlan | None = None
        """The step after the one in flight, where that is planned already."""
        beyond = scheduler.depth - 1
        self._foresight = Foresight(self.allocator, recording.memory.never_written, max_model_len, beyond=beyond)
        self._takeoff = Takeoff(scheduler, timing, recording, self._foresight, reference_need=reference_need)
        self._requests = LiveRequests(
            clock, scheduler, recording, self._foresight, self._progress, on_end=on_end, over=over
        )
        self.live = self._requests.by_sequence
        """Who is here, by sequence."""
        self._plans = Plans(scheduler, recording, self._foresight, self._progress, self.live)
        self._shuts_down = False
        """It is let go, and leaves nothing behind when the step in progress is over."""
        self.between_steps: Callable[[], None] | None = None
        """Called when a step is over and the next is not begun, if somebody wants something of an idle engine."""

    # What comes from outside.

    def submit(self, request: Request) -> None:
        """A request arrives now."""
        allocator = self.allocator
        journey = entering(request, self.max_model_len)
        most = self.scheduler.most_output(journey.sequence)
        if most is not None:
            journey.cut(most)
        need = first_need(self.scheduler, journey)
        never = request.prompt_tokens >= self.max_model_len or need > allocator.most_slots
        refusal = None if never else self.scheduler.impossible(journey.sequence)
        if never or (refusal is None and self.scheduler.waiting_count >= self._max_queued):
            use = self._use()
            refusal = Short("never" if never else "queue", need, use.free, use.largest_hole)
        if refusal:
            self._requests.refuse(journey, refusal)
            return
        queue_begins = not self.scheduler.waiting_count
        self._requests.enter(journey)
        if request.patience_ps is not None:
            At(self.clock, request.patience_ps, ARRIVAL, lambda _: self.cancel(journey))
        if self._next is None:
            self._schedule(0)
        elif queue_begins or not self.scheduler.stable_steps(1):
            self._cut()
        self._audit()

    def cancel(self, journey: Journey) -> None:
        """The client of a request gives up now. What waits ends at once, what is in flight when the step is over."""
        if not self._requests.cancel(journey, self._flight.late if self._flight else ()):
            return
        if not self._nobody_left():
            self._cut()
        self._audit()

    @property
    def end_ps(self) -> int:
        """When the last thing happened."""
        return self._requests.end_ps

    @property
    def over(self) -> bool:
        """Everybody has come and gone."""
        return self.exhausted and not self.live

    @property
    def computes_in_vain(self) -> bool:
        """A step is in progress for nobody any more."""
        return self._flight is not None and not self.scheduler.running_count

    def no_more(self) -> None:
        """See `Door`."""
        self.exhaust()
        self.recording.memory.close(self.clock.now_ps)

    def exhaust(self) -> None:
        """Nobody will come to it any more."""
        self.exhausted = True
        if self._flight is not None:
            self._nobody_left()

    def more_come(self) -> None:
        """See `Door`."""
        self.exhausted = False

    def shut_down(self) -> None:
        """Its process ends, with nobody left in it: whatever is cached is gone. Mutates."""
        if not self.allocator.caches:
            return
        if self._next is not None:
            self._shuts_down = True
        elif self.scheduler.flush():
            self.recording.memory.emptied(self.clock.now_ps)

    def start_up(self) -> None:
        """It takes requests from now on; what it has to leave behind it has. Mutates."""
        if self._shuts_down:
            self._leave_nothing()

    @property
    def held_slots(self) -> int:
        """Slots that live requests hold in the step in progress: neither free nor cached."""
        use = self._use()
        return use.used + use.unwritten + use.dead + use.moving

    def _use(self) -> PoolUse:
        """Where the slots are in the step in progress."""
        if self._flight is None:
            return self.allocator.usage()
        return self._flight.use(self.clock.now_ps, over=self.clock.has_had_its_turn(self._number))

    def _nobody_left(self) -> bool:
        """What is in flight, or planned, computes for nobody, and nobody will come: the run is over now."""
        if self.live or not self.exhausted:
            return False
        if self._flight is not None:
            self._flight.stop(self.clock.now_ps)
        self._flight = self._planned = None
        self._rest()
        return True

    def halt(self) -> None:
        """The horizon: what runs and what waits stays unfinished; the step in progress counts up to now."""
        now = self.clock.now_ps
        if self._flight is not None:
            # It is gone before anybody leaves: with the last one a fleet may be over, and stops what is in flight.
            flight, self._flight = self._flight, None
            flight.stop(now)
        # A run that was over before its horizon ended when its last request did.
        if self.live or not self.exhausted:
            self._requests.end_ps = now
        self._requests.stop()
        self._rest()
        self._audit()

    # Steps and leaps.

    def _schedule(self, delay_ps: int) -> None:
        self._next = At(self.clock, delay_ps, STEP_END + self._number, self._step_over)

    def _cut(self) -> None:
        """Something happened that the flight does not know of."""
        now = self.clock.now_ps
        if self._flight is not None and self._flight.cut(now, over=self.clock.has_had_its_turn(self._number)):
            self._schedule(self._flight.end_ps - now)

    def _step_over(self, event: Event) -> None:
        if event is not self._next:
            return
        self.clock.takes_turn(self._number)
        if self._flight is not None:
            flight, self._flight = self._flight, None
            requests = self._requests
            sampled = flight.finish(self.live)
            due = requests.sampled(sampled) if sampled else []
            if flight.late:
                due += requests.came_late(flight.late)
            requests.finish_due(due)
            if self._foresight.beams.to_come:
                requests.replace_due()
            if requests.leaving:
                requests.leave()
        if self.between_steps is not None:
            self.between_steps()
        self._audit()
        if not self._nobody_left():
            self._begin()

    def _begin(self) -> None:
        now = self.clock.now_ps
        if self._horizon_ps is None or now < self._horizon_ps:
            self._flight = (self._takeoff.leap(now) if self._leaps else None) or self._step(now)
        if self._flight is None:
            self._rest()
        elif self._flight.end_ps <= now:
            raise CheckError(f"a step from {now} ps to {self._flight.end_ps} ps: the clock must go forward, never back")
        else:
            self._schedule(self._flight.end_ps - now)

    def _rest(self) -> None:
        """Nothing runs from now on."""
        self._next = None
        if self._shuts_down:
            self._leave_nothing()
        self.recording.memory.rest(self.clock.now_ps, self.allocator.usage().cached)
        self._note_addresses(stalled=True)

    def _leave_nothing(self) -> None:
        self._shuts_down = False
        self.scheduler.flush()

    def _step(self, now: int) -> Flight | None:
        """Begin one step, and plan the one after it where two are in flight; None when there is nothing to do."""
        plan, self._planned = self._planned, None
        plan = plan or self._plans.next(now, self._requests)
        if plan is None:
            return None
        if self.scheduler.depth > 1:
            self._planned = self._plans.next(now, self._requests, ahead=True)
            if self.exhausted and not self.live:
                # The last of them failed by it, and the step that would begin computes for nobody.
                self._planned = None
                return None
        duration_ps = self._takeoff.duration_ps(plan)
        self.scheduler.launched(plan)
        self.recording.planned(plan)
        if self._addresses is not None:
            self._note_addresses(stalled=plan.stalled)
        tokens = plan.decodes + len(plan.late)
        for chunk in plan.chunks:
            if chunk.written + chunk.tokens == chunk.sequence.tokens:
                tokens += chunk.sequence.seats
        self._progress.step(now, tokens)
        return self._takeoff.step(now, duration_ps, plan, tokens, self._planned)

    def _note_addresses(self, *, stalled: bool) -> None:
        """What is held from now on is known; `stalled`: those that decode stand still."""
        if self._addresses is not None:
            running = [self.live[number] for number in self.scheduler.running]
            self._addresses.note(self.clock.now_ps, running, stalled=stalled)

    def _audit(self) -> None:
        if self._auditor is not None:
            self._auditor.audit(self)
