"""How a flight begins: a planned step, or a leap over many, with its time and with what is known of the pool."""

from kvsim.engine.ahead import Foresight
from kvsim.engine.recording import Recording
from kvsim.engine.steps.flight import LeapInFlight, StepInFlight
from kvsim.errors import CheckError
from kvsim.metrics.memory import Batch, Beside, Ramp
from kvsim.scheduling.interface import Scheduler
from kvsim.step import StepPlan
from kvsim.timing.interface import StepTiming


class Takeoff:
    """Begins flights; `reference_need` is the room in slots by which holes are judged while nothing waits."""

    def __init__(
        self,
        scheduler: Scheduler,
        timing: StepTiming,
        recording: Recording,
        foresight: Foresight,
        *,
        reference_need: int,
    ) -> None:
        self._scheduler = scheduler
        self._allocator = scheduler.allocator
        self._timing = timing
        self._recording = recording
        self._foresight = foresight
        self._reference_need = reference_need

    def duration_ps(self, plan: StepPlan) -> int:
        """How long the planned step takes, with all that it computes in vain."""
        return self._timing.step_ps(plan)

    def step(
        self, now_ps: int, duration_ps: int, plan: StepPlan, tokens: int, following: StepPlan | None
    ) -> StepInFlight:
        """The planned step, which emits `tokens` tokens; `following`: the one after it, if that is planned too."""
        prefill = sum([chunk.tokens for chunk in plan.chunks])
        return StepInFlight(
            now_ps,
            duration_ps,
            plan,
            self._scheduler,
            self._recording,
            self._beside(),
            self._batch(prefill, plan.decodes, plan.padding_tokens, plan.rows.context, tokens),
            ahead=int(following is not None and following.decodes > 0),
        )

    def leap(self, now_ps: int) -> LeapInFlight | None:
        """Leap if nothing but decoding will happen for a while, up to what is foreseen; else None."""
        decodes, until = self._allocator.decodes, self._foresight.next()
        if until is None:
            return None
        limit = self._scheduler.stable_steps(until - decodes.clock)
        if not limit:
            return None
        rows, context, pairs = self._scheduler.rows()
        if self._allocator.keeps:
            base, slope, below = self._timing.decode(rows, context)
            limit = _up_to(below, limit, rows, context)
            ramp = Ramp(base + slope * context, slope * rows)
        else:
            base, slope, pair, below = self._timing.anew(rows, context)
            limit = _up_to(below, limit, rows, context)
            # With the growth of each context by a token, the pairs grow by the contexts so far, one more for each.
            ramp = Ramp(base + slope * context + pair * pairs, slope * rows + pair * (context + rows), pair * rows)
        if slope < 0:
            raise CheckError(f"a context token takes {slope} ps: the clock must go forward, so no part of a step may")
        leap = self._allocator.leap(limit)
        if leap.steps < 1:
            return None
        count = decodes.count
        return LeapInFlight(
            now_ps,
            ramp,
            leap,
            self._scheduler,
            self._recording,
            self._beside(),
            self._batch(0, count, rows - count, context, count),
        )

    def _beside(self) -> Beside:
        """What is lost to shape, shared and kept twice, as it is after the plan."""
        external, host = 0, self._scheduler.host
        if self._allocator.has_holes:
            head = self._scheduler.head
            need = self._reference_need if head is None else self._allocator.capacity(head.reach)
            external = self._allocator.external(need)
        return self._recording.beside(external, self._allocator, 0 if host is None else host.used)

    def _batch(self, prefill: int, decodes: int, padding: int, context: int, tokens: int) -> Batch:
        scheduler = self._scheduler
        running, waiting = len(scheduler.running), scheduler.waiting_count
        own = self._allocator.decodes.written + decodes if decodes else 0
        requests = scheduler.running_requests
        return Batch(prefill, decodes, padding, context, running, waiting, tokens, requests, context - own)


def _up_to(below: int | None, limit: int, rows: int, context: int) -> int:
    """How many of `limit` steps begin with a context below that point, if each row grows by a token from step to
    step."""  # fmt: skip
    return limit if below is None else min(limit, -((context - below) // rows))
