"""Everything that is written down about a run, in one place, so that the replica itself stays about time."""

from collections.abc import Mapping
from collections.abc import Sequence as Seq

from kvsim.content import Layers
from kvsim.engine.addresses import AddressRecorder
from kvsim.engine.clock import Clock
from kvsim.engine.prefixes import CacheWatch, Follower
from kvsim.engine.recording.duplicates import Duplicates
from kvsim.engine.recording.gaps import TokenGaps
from kvsim.memory.interface import Allocator
from kvsim.metrics.memory import NOTHING, Batch, Beside, Levels, MemoryRecorder, Ramp
from kvsim.metrics.requests import Ended, Journey, RequestLog
from kvsim.metrics.tables import Pieces
from kvsim.metrics.window import Occupancy
from kvsim.request import Sequence
from kvsim.step import PoolUse, Preempted, Short, StepPlan
from kvsim.timing.fitted import FittedRange, Watch


class Recording:
    """The recorders of one replica; request records and step records share nothing but the calls made here."""

    def __init__(
        self,
        allocator: Allocator,
        *,
        window: str = "auto",
        warmup_ps: int = 0,
        check: bool = False,
        addresses: bool = False,
        clock: Clock | None = None,
        layers: Layers | None = None,
        kv_events: bool = False,
        follower: Follower | None = None,
        pieces: Pieces | None = None,
        slo_classes: Seq[str] = (),
        fitted: FittedRange | None = None,
    ) -> None:
        self.occupancy = Occupancy()
        self.requests = RequestLog(pieces, caches=allocator.caches, recalls=allocator.recalls, classes=slo_classes)
        self.memory = MemoryRecorder(
            allocator.pool_slots,
            self.occupancy,
            window=window,
            check=check,
            has_holes=allocator.has_holes,
            pieces=pieces,
        )
        self.addresses = AddressRecorder(allocator) if addresses else None
        """Only where somebody asks for it."""
        self.cache = (
            CacheWatch(allocator, clock, layers, kv_events=kv_events, follower=follower)
            if clock and allocator.caches
            else None
        )
        """Only where something can be found again."""
        self.upkeep = allocator.upkeep
        self.duplicates = Duplicates()
        self.gaps = TokenGaps(warmup_ps=warmup_ps)
        self.flushes: list[tuple[int, int | None]] = []
        """When the cache was to be emptied, and when that was done (None: never)."""
        self.copied_slots = 0
        self.gathered_slots = 0
        self.swapped_slots = 0
        self.padding_tokens = 0
        """Positions of batches that held no token and were computed all the same."""
        self.padding_context_tokens = 0
        """Tokens that decoding rows attended to beyond their own."""
        self.largest_step = (0, 0)
        """The most tokens that a step computed, padding included, and the most sequences in one."""
        self.fitted = None if fitted is None else Watch(fitted)
        """Only where step times were fitted to some range of batches."""
        self._saturated_only = window == "saturated"
        self._keeps = allocator.keeps

    def begins(self, cached_slots: int) -> None:
        """The run begins with so many slots cached; what it took to fill them is no part of the record."""
        self.memory.rest(0, cached_slots)
        if self.cache is not None:
            self.cache.residency.begins()
        if self.addresses is not None:
            self.addresses.note(0, (), stalled=True)

    def emptied(self, asked_ps: int, now_ps: int) -> None:
        """The cache was emptied, which somebody had asked for at `asked_ps`."""
        self.flushes.append((asked_ps, now_ps))
        self.memory.emptied(now_ps)
        if self.addresses is not None:
            self.addresses.note(now_ps, (), stalled=True)

    def over(self, now_ps: int) -> None:
        """The run is over: what was not handed over yet is now, where records are handed over."""
        self.memory.finish(now_ps)
        self.memory.hand_over(last=True)
        self.requests.hand_over()

    # Requests.

    def arrived(self, now_ps: int, journey: Journey) -> None:
        """A request is in the system."""
        self.requests.arrive(journey)
        self.occupancy.arrive(now_ps)

    def rejected(self, now_ps: int, journey: Journey, short: Short) -> Ended:
        """A request that can never be served is refused on arrival."""
        return self.requests.refused(now_ps, journey, short)

    def blocked(self, now_ps: int, journey: Journey, short: Short, outcome: str) -> None:
        """An allocation could not be met."""
        self.requests.blocked(now_ps, journey, short, outcome)

    def admitted(self, now_ps: int, journey: Journey) -> None:
        """A waiting request starts to run; what is written of it before its first chunk was found cached."""
        found = journey.sequence.written
        if self.cache is None:
            self.requests.admitted(now_ps, journey, found)
        else:
            self.requests.admitted(now_ps, journey, found, *self.cache.admission(journey.sequence))

    def resumed(self, now_ps: int, journey: Journey) -> None:
        """A preempted request is back from host memory, and decodes if it did."""
        self.requests.resumed(now_ps, journey)
        self.duplicates.holds(journey.sequence, journey.sequence.written)
        if journey.sequence.decoding:
            self.gaps.resumed(journey)

    def preempted(self, now_ps: int, journey: Journey, victim: Preempted) -> None:
        """A running request gives up its place in the pool."""
        if victim.decoding:
            self.gaps.paused(now_ps, journey)
        if self.addresses is not None:
            self.addresses.preempted(journey.sequence)
        self.requests.preempted(now_ps, journey, victim.lost_tokens, victim.swapped_tokens)
        self.left(journey)

    def sampled(self, now_ps: int, journey: Journey) -> None:
        """A prompt, or what had to be computed again, is done, and a token is out."""
        self.gaps.sampled(now_ps, journey)
        if journey.first_token_ps is None:
            journey.first_token_ps = now_ps

    def came_late(self, now_ps: int, journey: Journey) -> None:
        """A token that was in flight when its sequence was preempted is out."""
        self.gaps.came_late(now_ps, journey)
        if journey.first_token_ps is None:
            journey.first_token_ps = now_ps

    def left(self, journey: Journey) -> None:
        """A sequence owns nothing any more."""
        self.gaps.left(journey.sequence)
        self.memory.never_written.gives_back(journey.sequence)
        if journey.several:
            self.duplicates.left(journey.sequence)
        if self.addresses is not None:
            self.addresses.left(journey.sequence)

    def ended(self, now_ps: int, journey: Journey, end: str, generated: int) -> Ended | None:
        """A request that was in the system, or one sample of it, has ended; the record if the whole request has."""
        record = self.requests.end(now_ps, journey, end, generated)
        if record is not None:
            self.occupancy.leave(now_ps)
        return record

    # Steps.

    def planned(self, plan: StepPlan) -> None:
        """What a plan moves and computes in vain."""
        if plan.copied_slots or plan.gathered_slots or plan.swapped_slots:
            self.copied_slots += plan.copied_slots
            self.gathered_slots += plan.gathered_slots
            self.swapped_slots += plan.swapped_slots

    def beside(self, external: int, allocator: Allocator, host: int) -> Beside:
        """What is to be known of the pool beside the allocator's own count."""
        counts = allocator.keeps and not allocator.caches
        shared, duplicate = allocator.shared_slots, self.duplicates.slots if counts else 0
        return Beside(external, shared, duplicate, host) if external or shared or duplicate or host else NOTHING

    def stepped(
        self,
        start_ps: int,
        now_ps: int,
        clock: int,
        use: PoolUse,
        beside: Beside,
        batch: Batch,
        plan: StepPlan,
        live: Mapping[int, Journey],
    ) -> None:
        """A planned step is over, and nothing is written yet."""
        self.memory.step(start_ps, now_ps - start_ps, clock, use, beside, batch, stalled=plan.stalled)
        self.requests.step_over()
        self.gaps.counts = batch.waiting > 0 or not self._saturated_only
        if batch.padding_tokens or batch.padding_context:
            self.padding_tokens += batch.padding_tokens
            self.padding_context_tokens += batch.padding_context
        self._computes(batch, 1, plan.rows.height + len(plan.chunks))
        if self.fitted is not None:
            self.fitted.step(now_ps - start_ps, plan.rows.height, plan.rows.context, plan.padded_chunks)
        if plan.stalled:
            self.gaps.stalled(start_ps)
        else:
            self.gaps.stepped(start_ps, now_ps, plan.decodes)
            if self.duplicates.copies_due:
                self.duplicates.stepped()
        for chunk in plan.chunks:
            journey = live[chunk.sequence.id]
            self.requests.written(journey, chunk.written, chunk.tokens)
            if journey.several:
                self.duplicates.written(chunk)

    def leapt(
        self,
        start_ps: int,
        ramp: Ramp,
        steps: int,
        clock: int,
        owned: Levels,
        beside: Beside,
        batch: Batch,
    ) -> None:
        """A leap is over, and nothing is written yet."""
        self.memory.leap(start_ps, ramp, steps, clock, owned, beside, batch)
        self.requests.step_over()
        self.gaps.counts = batch.waiting > 0 or not self._saturated_only
        if batch.padding_tokens or batch.padding_context:
            self.padding_tokens += batch.padding_tokens * steps
            # A row that pads the batch is all padding, and longer by a token from step to step.
            grown = batch.padding_tokens * (steps * (steps - 1) // 2)
            self.padding_context_tokens += batch.padding_context * steps + grown
        rows = batch.decode_tokens + batch.padding_tokens
        self._computes(batch, steps, rows)
        if self.fitted is not None:
            self.fitted.leap(ramp.until, rows, batch.context_tokens, steps)
        self.gaps.leapt(start_ps, ramp, steps, batch.decode_tokens)

    def leaping(self, start_ps: int, ramp: Ramp, clock: int) -> None:
        """From now on the pool changes in the steps of `ramp`, the first of which began when `clock` decodes were."""
        if self.cache is not None:
            self.cache.moment.leap(start_ps, ramp, clock)

    def landed(self) -> None:
        """The steps of a leap are done: the pool changes when the clock says."""
        if self.cache is not None:
            self.cache.moment.land()

    def _computes(self, batch: Batch, steps: int, sequences: int) -> None:
        rows = batch.decode_tokens + batch.padding_tokens
        tokens = batch.prefill_tokens + (rows if self._keeps else batch.context_tokens + rows * (steps - 1))
        most_tokens, most_sequences = self.largest_step
        if tokens > most_tokens or sequences > most_sequences:
            self.largest_step = max(tokens, most_tokens), max(sequences, most_sequences)

    def stopped(
        self, start_ps: int, now_ps: int, clock: int, use: PoolUse, beside: Beside, batch: Batch, *,
        stalled: bool = False,
    ) -> None:  # fmt: skip
        """The horizon cuts a step."""
        self.memory.stop(start_ps, now_ps, clock, use, beside, batch, stalled=stalled)

    def replaced(self, dropped: Sequence, kept: Sequence, common: int) -> None:
        """Beam search goes on with `kept` in the place of `dropped` as well; they share `common` tokens for good."""
        self.memory.never_written.gives_back(dropped)
        self.duplicates.left(dropped)
        self.duplicates.forked(kept, dropped, common)
        if self.addresses is not None:
            self.addresses.left(dropped)
            self.addresses.forked(kept, dropped)

    def forked(self, parent: Sequence, child: Sequence, common: int) -> None:
        """`child` has forked off `parent` at the end of its prompt, of which they share `common` tokens for good."""
        self.memory.never_written.gives_back(parent)
        self.duplicates.forked(parent, child, common)
        if self.addresses is not None:
            self.addresses.forked(parent, child)
