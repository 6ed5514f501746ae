"""The next plan that computes something, and what happened to requests while it was made."""

from collections.abc import Mapping
from typing import Protocol

from kvsim.engine.ahead import Foresight
from kvsim.engine.recording import Recording
from kvsim.engine.steps.progress import ProgressWatch
from kvsim.errors import RunError
from kvsim.metrics.requests import Journey
from kvsim.scheduling.interface import Scheduler
from kvsim.step import StepPlan


class Ends(Protocol):
    """Whoever ends requests. It is handed in with each question, so that a run makes no rings of objects."""

    def fail(self, journey: Journey) -> None:
        """A plan has aborted a request, or one of its samples."""

    def hand_over(self) -> None:
        """Those whose results go out now leave."""


class Plans:
    """Asks `scheduler` for plans, and notes what became of the `live` requests."""

    def __init__(
        self,
        scheduler: Scheduler,
        recording: Recording,
        foresight: Foresight,
        progress: ProgressWatch,
        live: Mapping[int, Journey],
    ) -> None:
        self._scheduler = scheduler
        self._recording = recording
        self._foresight = foresight
        self._progress = progress
        self._live = live

    def next(self, now_ps: int, ends: Ends, *, ahead: bool = False) -> StepPlan | None:
        """The next plan that computes something; None when there is nothing to do.

        With `ahead` a step is about to begin: if the one after it computes nothing, the result comes in before another
        is planned. Raises RunError where requests wait or run and nothing comes of it.
        """
        scheduler = self._scheduler
        idle: StepPlan | None = None
        # A plan may only abort or preempt; each of these leaves one request fewer to do it to.
        for _ in range(2 * len(self._live) + 2):
            if not (scheduler.running_count or scheduler.waiting_count):
                break
            plan = scheduler.plan()
            self._take_note(now_ps, plan, ends)
            if plan.aborted or plan.preempted:
                ends.hand_over()
            if idle:
                plan.moved_before(idle)
            if not plan.empty:
                return plan
            if ahead:
                return None
            idle = plan
        if not (scheduler.running_count or scheduler.waiting_count):
            if idle:
                # What the last of them moved delays nobody, and is counted all the same.
                self._recording.planned(idle)
            return None
        raise RunError(self._progress.diagnosis(now_ps, "nothing is planned although requests wait or run"))

    def _take_note(self, now_ps: int, plan: StepPlan, ends: Ends) -> None:
        """What happened while the plan was made."""
        recording, live, foresight = self._recording, self._live, self._foresight
        for sequence, short, outcome in plan.blocked:
            recording.blocked(now_ps, live[sequence.id], short, outcome)
        for victim in plan.preempted:
            recording.preempted(now_ps, live[victim.sequence.id], victim)
        for sequence in plan.aborted:
            ends.fail(live[sequence.id])
        for sequence in plan.granted:
            if sequence.id in live:
                live[sequence.id].blocked_cause = None
        for sequence in plan.admitted:
            recording.admitted(now_ps, live[sequence.id])
        for sequence in plan.resumed:
            journey = live[sequence.id]
            recording.resumed(now_ps, journey)
            foresight.holds(journey)
            if sequence.decoding:
                foresight.expect(journey)
        for chunk in plan.chunks:
            foresight.holds(live[chunk.sequence.id])
        for sequence in plan.ahead:
            foresight.holds(live[sequence.id])
