"""Everything that is written down about a run, in one place, so that the replica itself stays about time."""

from collections.abc import Mapping

from kvsim.metrics.histogram import DurationHistogram
from kvsim.metrics.memory import Batch, Levels, MemoryRecorder, Ramp
from kvsim.metrics.requests import Journey, RequestLog
from kvsim.metrics.window import Occupancy
from kvsim.step import PoolUse, Preempted, Short, StepPlan


class Recording:
    """The recorders of one replica; request records and step records share nothing but the calls made here."""

    def __init__(self, pool_slots: int, *, window: str = "auto", warmup_ps: int = 0, check: bool = False) -> None:
        self.occupancy = Occupancy()
        self.requests = RequestLog()
        self.memory = MemoryRecorder(pool_slots, self.occupancy, window=window, check=check)
        self.gaps = DurationHistogram()
        """Inter-token latency: every gap between two tokens of a request that arrived after the warm-up.

        In a saturated window: those that end in a step of the window.
        """
        self.copied_slots = 0
        self._warmup_ps = warmup_ps
        self._saturated_only = window == "saturated"
        self._counts = True
        """The step that is being recorded lies in the measured window, if that is a saturated one."""
        self._early: set[int] = set()
        """Decoding requests that arrived before the end of the warm-up; their gaps do not count."""

    # Requests.

    def arrived(self, now_ps: int, journey: Journey) -> None:
        """A request is in the system."""
        self.requests.arrive(journey)
        self.occupancy.arrive(now_ps)

    def rejected(self, now_ps: int, journey: Journey, short: Short) -> None:
        """A request that can never be served is refused on arrival."""
        self.requests.arrive(journey)
        self.requests.blocked(now_ps, journey, short, "reject")
        self.requests.end(now_ps, journey, "rejected", 0)

    def blocked(self, now_ps: int, journey: Journey, short: Short, outcome: str) -> None:
        """An allocation could not be met."""
        self.requests.blocked(now_ps, journey, short, outcome)

    def admitted(self, now_ps: int, journey: Journey) -> None:
        """A waiting request starts to run."""
        journey.blocked_cause = None
        if journey.first_scheduled_ps is None:
            journey.first_scheduled_ps = now_ps

    def preempted(self, now_ps: int, journey: Journey, victim: Preempted) -> None:
        """A running request loses its KV; until now it emitted a token at the end of each step."""
        if victim.decoding:
            journey.last_token_ps = now_ps
            self._early.discard(journey.request.id)
        self.requests.preempted(now_ps, journey, victim.lost_tokens)
        self.memory.never_written.gives_back(journey.sequence)

    def sampled(self, now_ps: int, journey: Journey) -> None:
        """A prompt, or what had to be computed again, is done, and a token is out."""
        early = journey.request.arrival_ps < self._warmup_ps
        if early:
            self._early.add(journey.request.id)
        if journey.first_token_ps is None:
            journey.first_token_ps = now_ps
        elif self._counts and not early:
            self.gaps.add(now_ps - journey.last_token_ps)

    def ended(self, now_ps: int, journey: Journey, end: str, generated: int) -> None:
        """A request that was in the system has ended."""
        self._early.discard(journey.request.id)
        self.memory.never_written.gives_back(journey.sequence)
        self.occupancy.leave(now_ps)
        self.requests.end(now_ps, journey, end, generated)

    # Steps.

    def stepped(
        self,
        start_ps: int,
        now_ps: int,
        clock: int,
        use: PoolUse,
        external: int,
        batch: Batch,
        plan: StepPlan,
        live: Mapping[int, Journey],
    ) -> None:
        """A planned step is over, and nothing is written yet."""
        duration = now_ps - start_ps
        self.memory.step(start_ps, duration, clock, use, external, batch)
        self._counts = batch.waiting > 0 or not self._saturated_only
        if self._counts:
            self.gaps.add(duration, plan.decodes - len(self._early))
        for chunk in plan.chunks:
            self.requests.written(live[chunk.sequence.id], chunk.written, chunk.tokens)

    def leapt(
        self,
        start_ps: int,
        ramp: Ramp,
        steps: int,
        clock: int,
        owned: Levels,
        external: int,
        batch: Batch,
    ) -> None:
        """A leap is over, and nothing is written yet."""
        self.memory.leap(start_ps, ramp, steps, clock, owned, external, batch)
        if batch.waiting > 0 or not self._saturated_only:
            self.gaps.add_ramp(ramp.first_ps, ramp.rise_ps, steps, batch.decode_tokens - len(self._early))

    def stopped(self, start_ps: int, now_ps: int, clock: int, use: PoolUse, external: int, batch: Batch) -> None:
        """The horizon cuts a step."""
        self.memory.stop(start_ps, now_ps, clock, use, external, batch)
