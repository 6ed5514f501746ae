"""Memory over time: slots by class of the accounting identity, integrated exactly over steps and leaps.

The recorder alone tells `reserved` from `internal`: the allocator says what is owned and not written, and the engine,
which knows where each request will end, says from which decode step on it owns slots that it will never write.
"""

from array import array
from heapq import heappop, heappush
from typing import NamedTuple, Protocol

from kvsim.metrics.window import Occupancy, Totals
from kvsim.request import Sequence
from kvsim.step import CLASSES, PoolUse

SERIES = (
    "start_ps",
    "duration_ps",
    "steps",
    "prefill_tokens",
    "decode_tokens",
    "context_tokens",
    "running",
    "waiting",
    *CLASSES,
)
"""Columns of the record of steps: a row per step or leap, levels as they are during its first step."""


class Levels(Protocol):
    """What a leap says of the slots that are owned and not written (see `memory.interface.Leap`)."""

    bound: int

    def use_at(self, step: int) -> PoolUse:
        """Where the slots are during a step."""
        ...

    def unwritten_sum(self, steps: int, a: int, b: int) -> int:
        """Sum over steps j < `steps` of (a + b j) x level."""
        ...

    def unwritten_peak(self, first: int, last: int) -> int:
        """Highest level in steps first..last-1."""
        ...


class Batch(NamedTuple):
    """Who is in a step: for the record's rows."""

    prefill_tokens: int
    decode_tokens: int
    context_tokens: int
    running: int
    waiting: int
    tokens: int
    """Output tokens that one step emits."""


class Ramp(NamedTuple):
    """Step times of a leap: step j lasts `first_ps + rise_ps * j`."""

    first_ps: int
    rise_ps: int

    def until(self, steps: int) -> int:
        """Time that the first `steps` steps take."""
        return self.first_ps * steps + self.rise_ps * (steps * (steps - 1) // 2)

    def done_by(self, elapsed_ps: int, limit: int) -> int:
        """How many of at most `limit` steps are over when `elapsed_ps` have passed."""
        low, high = 0, limit
        while low < high:
            middle = (low + high + 1) // 2
            if self.until(middle) <= elapsed_ps:
                low = middle
            else:
                high = middle - 1
        return low


class MemoryRecorder:
    """Integrates the eight classes of one pool, and keeps the record of steps.

    `window` says what counts: "auto" and "last_finish" everything from `open` on (`close` freezes a copy), and
    "saturated" only the steps before which requests were left waiting.
    """

    def __init__(self, pool_slots: int, occupancy: Occupancy, *, window: str = "auto") -> None:
        self.pool_slots = pool_slots
        self.series = array("q")
        self.totals = Totals()
        self.closed: Totals | None = None
        """The sums up to the last arrival."""
        self.opened_ps = 0
        self.steps = 0
        self._occupancy = occupancy
        self._saturated_only = window == "saturated"
        self._open_ps: int | None = None
        self._close_ps: int | None = None
        self._close_stay_ps = 0
        self._stay_ps = 0
        self._end_ps = 0
        self._internal = 0
        self._never: dict[int, int] = {}
        """Slots that each live request owns and will never write."""
        self._to_come: list[tuple[int, int, int, Sequence]] = []
        """Heap of (decode clock, admission, slots, sequence): from that step on it owns slots it will never write."""

    # Who owns what it will never write.

    def owns(self, sequence: Sequence, never_written: int) -> None:
        """From now on `sequence` owns this many slots that it will never write (0 or less: none)."""
        if never_written > 0:
            self._internal += never_written - self._never.get(sequence.id, 0)
            self._never[sequence.id] = never_written

    def will_own(self, sequence: Sequence, clock: int, never_written: int) -> None:
        """The same, from the decode step at `clock` on."""
        if never_written > 0:
            heappush(self._to_come, (clock, sequence.admission, never_written, sequence))

    def gives_back(self, sequence: Sequence) -> None:
        """`sequence` owns nothing any more."""
        self._internal -= self._never.pop(sequence.id, 0)

    def _new_owners(self, first_clock: int, last_clock: int) -> list[tuple[int, int]]:
        """(step, slots) for everyone who gets its last slots in the steps first_clock..last_clock."""
        found, heap = [], self._to_come
        while heap and heap[0][0] <= last_clock:
            clock, admission, slots, sequence = heappop(heap)
            if sequence.decoding and sequence.admission == admission:
                self._never[sequence.id] = slots
                found.append((clock - first_clock, slots))
        return found

    # The window.

    def open(self, now_ps: int) -> None:
        """The warm-up ends at `now_ps`: forget what was added up before it."""
        self._occupancy.reading(now_ps)
        self._open_ps = now_ps
        self._stay_ps = self._occupancy.stay_ps

    def close(self, now_ps: int) -> None:
        """The last request arrives at `now_ps`: a copy of the sums up to here is kept in `closed`.

        A saturated window has no such end: it is wherever the queue is not empty.
        """
        if self._saturated_only:
            return
        self._close_stay_ps = self._occupancy.reading(now_ps)
        self._close_ps = now_ps

    # Steps, leaps, idle time.

    def step(self, start_ps: int, duration_ps: int, clock: int, use: PoolUse, external: int, batch: Batch) -> None:
        """One step, with the levels that hold during it. Call when it is over and before anything is written."""
        for _, slots in self._new_owners(clock, clock):
            self._internal += slots
        levels = self._levels(use, self._internal, external)
        self._idle_until(start_ps)
        self._span(start_ps, start_ps + duration_ps, levels, batch)
        self._row(start_ps, duration_ps, 1, batch, levels)
        self._settle_stay(start_ps + duration_ps, batch)

    def leap(
        self, start_ps: int, ramp: Ramp, steps: int, clock: int, owned: Levels, external: int, batch: Batch
    ) -> None:
        """The same for `steps` decode steps at once."""
        owners = self._new_owners(clock, clock + steps - 1)
        before = self._internal
        self._idle_until(start_ps)
        for low, high, marked in self._pieces(start_ps, ramp, steps):
            at = start_ps + ramp.until(low)
            if marked:
                internal = before + sum(slots for step, slots in owners if step <= low)
                levels = self._levels(owned.use_at(low), internal, external)
                self._span(at, start_ps + ramp.until(high), levels, batch)
            else:
                self._marks_passed(at)
                self._stretch(ramp, low, high, owned, external, batch, before, owners)
        self._internal = before + sum(slots for _, slots in owners)
        at_first = before + sum(slots for step, slots in owners if step == 0)
        duration_ps = ramp.until(steps)
        self._row(start_ps, duration_ps, steps, batch, self._levels(owned.use_at(0), at_first, external))
        self._settle_stay(start_ps + duration_ps, batch)

    def stop(self, start_ps: int, now_ps: int, clock: int, use: PoolUse, external: int, batch: Batch) -> None:
        """The run is stopped in the middle of a step: its levels count up to `now_ps`, its tokens do not."""
        for _, slots in self._new_owners(clock, clock):
            self._internal += slots
        self._idle_until(start_ps)
        levels = self._levels(use, self._internal, external)
        self._span(start_ps, now_ps, levels, batch._replace(tokens=0))
        self._row(start_ps, now_ps - start_ps, 0, batch, levels)
        self._settle_stay(now_ps, batch)

    def finish(self, now_ps: int) -> None:
        """The run is over."""
        self._idle_until(now_ps)
        self._marks_passed(now_ps)

    def _levels(self, use: PoolUse, internal: int, external: int) -> tuple[int, ...]:
        reserved = use.unwritten - internal
        taken = use.used + use.unwritten + use.dead + use.moving + use.cached + external
        free = self.pool_slots - taken
        return (use.used, reserved, internal, use.dead, use.moving, use.cached, external, free)

    def _idle_until(self, now_ps: int) -> None:
        if now_ps > self._end_ps:
            self._span(self._end_ps, now_ps, (0,) * 7 + (self.pool_slots,), _NOBODY)

    def _marks_passed(self, now_ps: int) -> None:
        """Act on the ends of the window that lie at or before `now_ps`."""
        if self._open_ps is not None and self._open_ps <= now_ps:
            self.opened_ps, self._open_ps = self._open_ps, None
            self.totals = Totals()
        if self._close_ps is not None and self._close_ps <= now_ps:
            self._close_ps = None
            self.closed = self.totals.copy()
            self.closed.stay_ps += self._close_stay_ps - self._stay_ps

    def _span(self, start_ps: int, end_ps: int, levels: tuple[int, ...], batch: Batch) -> None:
        """Constant levels from start to end; the tokens come at the end."""
        self._marks_passed(start_ps)
        at = start_ps
        marks = (self._open_ps, self._close_ps)
        if marks != (None, None):
            for mark in sorted(m for m in marks if m is not None and start_ps < m < end_ps):
                self._add(mark - at, levels, batch, 0)
                self._marks_passed(mark)
                at = mark
        self._add(end_ps - at, levels, batch, batch.tokens)
        self._end_ps = end_ps

    def _add(self, time_ps: int, levels: tuple[int, ...], batch: Batch, tokens: int) -> None:
        if not time_ps or (self._saturated_only and not batch.waiting):
            return
        totals = self.totals
        slots_ps, peaks = totals.slots_ps, totals.peaks
        for index, level in enumerate(levels):
            if level:
                slots_ps[index] += level * time_ps
                if level > peaks[index]:
                    peaks[index] = level
        self._tally(time_ps, batch, tokens)

    def _tally(self, time_ps: int, batch: Batch, tokens: int) -> None:
        totals = self.totals
        totals.time_ps += time_ps
        totals.running_ps += batch.running * time_ps
        totals.tokens += tokens
        if batch.running > totals.max_running:
            totals.max_running = batch.running

    def _stretch(
        self,
        ramp: Ramp,
        low: int,
        high: int,
        owned: Levels,
        external: int,
        batch: Batch,
        before: int,
        owners: list[tuple[int, int]],
    ) -> None:
        """Steps low..high-1 of a leap, in closed form."""
        time_ps = ramp.until(high) - ramp.until(low)
        self._end_ps += time_ps
        if not time_ps or (self._saturated_only and not batch.waiting):
            return
        a, b, count = ramp.first_ps, ramp.rise_ps, batch.decode_tokens
        used = owned.use_at(0).used
        ones = high - low
        firsts = (high * (high - 1) - low * (low - 1)) // 2
        squares = ((high - 1) * high * (2 * high - 1) - (low - 1) * low * (2 * low - 1)) // 6
        used_ps = a * used * ones + (a * count + b * used) * firsts + b * count * squares
        unwritten_ps = owned.unwritten_sum(high, a, b)
        if low:
            unwritten_ps -= owned.unwritten_sum(low, a, b)
        internal = before
        internal_ps = 0
        bounds = [low]
        levels = []
        for step, slots in owners:
            if step >= high:
                break
            if step > low:
                internal_ps += internal * (ramp.until(step) - ramp.until(bounds[-1]))
                levels.append(internal)
                bounds.append(step)
            internal += slots
        internal_ps += internal * (ramp.until(high) - ramp.until(bounds[-1]))
        levels.append(internal)
        bounds.append(high)
        totals = self.totals
        slots_ps, peaks = totals.slots_ps, totals.peaks
        slots_ps[0] += used_ps
        slots_ps[1] += unwritten_ps - internal_ps
        slots_ps[2] += internal_ps
        slots_ps[6] += external * time_ps
        slots_ps[7] += (self.pool_slots - external) * time_ps - used_ps - unwritten_ps
        peaks[0] = max(peaks[0], used + count * (high - 1))
        peaks[2] = max(peaks[2], internal)
        peaks[6] = max(peaks[6], external)
        peaks[7] = max(peaks[7], owned.use_at(low).free - external)
        # `reserved` rises and falls within a leap; looking for its top is skipped where it cannot be a new one.
        if owned.bound > peaks[1]:
            for index, level in enumerate(levels):
                top = owned.unwritten_peak(bounds[index], bounds[index + 1]) - level
                if top > peaks[1]:
                    peaks[1] = top
        self._tally(time_ps, batch, batch.tokens * ones)

    def _pieces(self, start_ps: int, ramp: Ramp, steps: int) -> list[tuple[int, int, bool]]:
        """A leap cut into stretches and, apart and marked, the steps in which the window opens or closes."""
        within = {
            ramp.done_by(mark - start_ps, steps)
            for mark in (self._open_ps, self._close_ps)
            if mark is not None and start_ps < mark < start_ps + ramp.until(steps)
        }
        pieces, low = [], 0
        for step in sorted(within):
            if step > low:
                pieces.append((low, step, False))
            pieces.append((step, step + 1, True))
            low = step + 1
        if low < steps:
            pieces.append((low, steps, False))
        return pieces

    def _settle_stay(self, now_ps: int, batch: Batch) -> None:
        stay_ps = self._occupancy.reading(now_ps)
        if not self._saturated_only or batch.waiting:
            self.totals.stay_ps += stay_ps - self._stay_ps
        self._stay_ps = stay_ps

    def _row(self, start_ps: int, duration_ps: int, steps: int, batch: Batch, levels: tuple[int, ...]) -> None:
        self.steps += steps
        self.series.extend((start_ps, duration_ps, steps, *batch[:5], *levels))


_NOBODY = Batch(0, 0, 0, 0, 0, 0)
