"""What is in flight: one step, or a leap over many, from its plan to its end.

A replica has one of these at a time. In a deeper pipeline the step after it is planned when it begins, and waits.
"""

from collections.abc import Mapping
from collections.abc import Sequence as Seq
from typing import Protocol

from kvsim.engine.recording import Recording
from kvsim.memory.interface import Leap
from kvsim.metrics.memory import Batch, Beside, Ramp
from kvsim.metrics.requests import Journey
from kvsim.request import Sequence
from kvsim.scheduling.interface import Scheduler
from kvsim.step import PoolUse, StepPlan


class Flight(Protocol):
    """A step or a leap in progress."""

    end_ps: int
    """When it is over."""

    @property
    def late(self) -> Seq[Sequence]:
        """Preempted sequences for which a token has come of it all the same; known once it has finished."""
        ...

    def cut(self, now_ps: int, *, over: bool) -> bool:
        """Something happened that was not foreseen: end with the step in progress. True if that is sooner.

        A step that ends at this very moment is over already, or still in progress.
        """
        ...

    def use(self, now_ps: int, *, over: bool) -> PoolUse:
        """Where the slots are in the step in progress; `over` as above."""
        ...

    def finish(self, live: Mapping[int, Journey]) -> list[Sequence]:
        """It is over: record it, then write what it computed. Returns those that sampled at the end of a prompt."""
        ...

    def stop(self, now_ps: int) -> None:
        """The horizon: whole steps of a leap are written, the one in progress is only recorded up to `now_ps`."""
        ...


class StepInFlight:
    """One planned step. `ahead` decode steps after it are planned already, and have their slots."""

    __slots__ = (
        "_ahead",
        "_allocator",
        "_batch",
        "_beside",
        "_recording",
        "_scheduler",
        "end_ps",
        "plan",
        "start_ps",
    )

    def __init__(
        self,
        start_ps: int,
        duration_ps: int,
        plan: StepPlan,
        scheduler: Scheduler,
        recording: Recording,
        beside: Beside,
        batch: Batch,
        *,
        ahead: int,
    ) -> None:
        self.start_ps = start_ps
        self.end_ps = start_ps + duration_ps
        self.plan = plan
        self._ahead = ahead
        self._scheduler = scheduler
        self._allocator = scheduler.allocator
        self._recording = recording
        self._beside = beside
        self._batch = batch

    @property
    def late(self) -> list[Sequence]:
        """See `Flight`."""
        return self.plan.late

    def cut(self, now_ps: int, *, over: bool) -> bool:
        """See `Flight`; a step cannot be cut."""
        return False

    def use(self, now_ps: int, *, over: bool) -> PoolUse:
        """See `Flight`."""
        return self._allocator.usage()

    def finish(self, live: Mapping[int, Journey]) -> list[Sequence]:
        """See `Flight`."""
        clock, use = self._allocator.decodes.clock + self._ahead, self._allocator.usage()
        self._recording.stepped(self.start_ps, self.end_ps, clock, use, self._beside, self._batch, self.plan, live)
        sampled = self._scheduler.complete(self.plan)
        for fork in self.plan.forked:
            self._recording.forked(*fork)
        return sampled

    def stop(self, now_ps: int) -> None:
        """See `Flight`."""
        clock, use = self._allocator.decodes.clock + self._ahead, self._allocator.usage()
        stalled = self.plan.stalled
        self._recording.stopped(self.start_ps, now_ps, clock, use, self._beside, self._batch, stalled=stalled)


class LeapInFlight:
    """Many steps at once; nothing is applied before the end, so that it can be cut at any of them."""

    __slots__ = (
        "_allocator",
        "_batch",
        "_beside",
        "_leap",
        "_ramp",
        "_recording",
        "_scheduler",
        "_steps",
        "end_ps",
        "start_ps",
    )
    late: Seq[Sequence] = ()

    def __init__(
        self,
        start_ps: int,
        ramp: Ramp,
        leap: Leap,
        scheduler: Scheduler,
        recording: Recording,
        beside: Beside,
        batch: Batch,
    ) -> None:
        self.start_ps = start_ps
        self.end_ps = start_ps + ramp.until(leap.steps)
        self._ramp = ramp
        self._leap = leap
        self._steps = leap.steps
        self._scheduler = scheduler
        self._allocator = scheduler.allocator
        self._recording = recording
        self._beside = beside
        self._batch = batch

    def cut(self, now_ps: int, *, over: bool) -> bool:
        """See `Flight`."""
        elapsed = now_ps - self.start_ps
        steps = self._ramp.done_by(elapsed, self._steps)
        if self._ramp.until(steps) < elapsed or not steps or over:
            steps += 1
        if steps >= self._steps:
            return False
        self._steps = steps
        self.end_ps = self.start_ps + self._ramp.until(steps)
        return True

    def use(self, now_ps: int, *, over: bool) -> PoolUse:
        """See `Flight`."""
        until_ps = now_ps - self.start_ps - (not over)
        return self._leap.use_at(self._ramp.done_by(until_ps, self._steps))

    def finish(self, live: Mapping[int, Journey]) -> list[Sequence]:
        """See `Flight`."""
        self._apply(self._steps)
        return []

    def stop(self, now_ps: int) -> None:
        """See `Flight`."""
        done = self._ramp.done_by(now_ps - self.start_ps, self._steps)
        if done:
            self._apply(done)
        start_ps = self.start_ps + self._ramp.until(done)
        if start_ps < now_ps:
            self._recording.leaping(start_ps, self._ramp, self._allocator.decodes.clock)
            self._allocator.acquire((), decodes=True)
            clock, use = self._clock, self._allocator.usage()
            batch = self._batch._replace(waiting=self._waiting_at(start_ps))
            self._recording.stopped(start_ps, now_ps, clock, use, self._beside, batch)
            # What it took, it took when it began; whoever is let go now goes at the horizon.
            self._recording.landed()

    def _waiting_at(self, start_ps: int) -> int:
        """Sequences that waited when the step in progress began: whoever joins a queue does not cut a leap."""
        running = self._scheduler.running
        here = sum(s.arrival_ps <= start_ps for s in self._scheduler.live() if s.id not in running)
        gone = self._recording.requests.cancelled
        return here + sum(end.arrival_ps <= start_ps < end.end_ps for end in gone)

    @property
    def _clock(self) -> int:
        """The decode clock of the slots that are had: as far ahead as steps are planned."""
        return self._allocator.decodes.clock + self._scheduler.depth - 1

    def _apply(self, steps: int) -> None:
        self._recording.leapt(self.start_ps, self._ramp, steps, self._clock, self._leap, self._beside, self._batch)
        self._recording.leaping(self.start_ps, self._ramp, self._allocator.decodes.clock)
        self._leap.apply(steps)
        self._scheduler.leapt(steps)
        self._recording.landed()
