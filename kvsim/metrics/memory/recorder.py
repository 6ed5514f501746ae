"""The recorder of one pool: each step and leap added up over the measured window, and the record of them all."""

import struct
import sys
from array import array
from itertools import pairwise
from typing import TYPE_CHECKING

from kvsim.errors import RunError
from kvsim.metrics.memory.integrals import WindowIntegrals
from kvsim.metrics.memory.levels import NOTHING, ROW, SERIES, Batch, Beside, Levels
from kvsim.metrics.memory.owners import NeverWritten
from kvsim.metrics.memory.ramp import Ramp
from kvsim.metrics.memory.waited import Waited
from kvsim.metrics.window import Occupancy
from kvsim.request import PS_PER_S
from kvsim.step import CLASSES, PoolUse

if TYPE_CHECKING:
    from kvsim.metrics.tables.interface import Pieces

_USED, _RESERVED, _INTERNAL, _DEAD, _MOVING, _CACHED, _EXTERNAL, _FREE = range(len(CLASSES))


class MemoryRecorder(WindowIntegrals):
    """What a replica says of each step and leap, added up (see `WindowIntegrals`) and written down row by row.

    The record of steps is kept, or, with `pieces`, handed over whenever it is long.
    """

    def __init__(
        self,
        pool_slots: int,
        occupancy: Occupancy,
        *,
        window: str = "auto",
        check: bool = False,
        has_holes: bool = False,
        pieces: "Pieces | None" = None,
    ) -> None:
        super().__init__(pool_slots, occupancy, window=window, check=check, has_holes=has_holes)
        self.never_written = NeverWritten()
        self.series = array("q")
        """The record of steps, row after row of `SERIES`; with `pieces`, what was not handed over yet."""
        self.steps = 0
        self._into = pieces
        self._most = sys.maxsize if pieces is None else pieces.rows * len(SERIES)
        self._waited = Waited() if window == "saturated" else None
        self._row_stay_ps = 0

    # Steps and leaps.

    def step(
        self, start_ps: int, duration_ps: int, clock: int, use: PoolUse, beside: Beside, batch: Batch, *,
        stalled: bool = False,
    ) -> None:  # fmt: skip
        """One step, with the levels that hold during it. Call when it is over and before anything is written.

        In a `stalled` one nobody decodes, so that nobody gets decode slots.
        """
        self._one(start_ps, duration_ps, 1, clock, use, beside, batch, stalled)

    def stop(
        self, start_ps: int, now_ps: int, clock: int, use: PoolUse, beside: Beside, batch: Batch, *,
        stalled: bool = False,
    ) -> None:  # fmt: skip
        """The run is stopped in the middle of a step: its levels count up to `now_ps`, its tokens do not."""
        self._one(start_ps, now_ps - start_ps, 0, clock, use, beside, batch._replace(tokens=0), stalled)

    def _one(
        self, start_ps: int, duration_ps: int, steps: int, clock: int, use: PoolUse, beside: Beside, batch: Batch,
        stalled: bool,
    ) -> None:  # fmt: skip
        self.never_written.come_due(clock, 0 if stalled else 1)
        levels = self._levels(use, self.never_written.slots, beside)
        if start_ps > self._end_ps:
            self._idle_until(start_ps)
        self._span(start_ps, start_ps + duration_ps, levels, use, beside, batch)
        self._close_row(start_ps, duration_ps, steps, batch, levels, use, beside)

    def leap(
        self, start_ps: int, ramp: Ramp, steps: int, clock: int, owned: Levels, beside: Beside, batch: Batch
    ) -> None:
        """The same for `steps` decode steps at once."""
        before = self.never_written.slots
        due = self.never_written.come_due(clock, steps)
        first = owned.use_at(0)
        if start_ps > self._end_ps:
            self._idle_until(start_ps)
        if self._open_ps is None and self._close_ps is None:
            self._stretch(ramp, 0, steps, owned, first, beside, batch, before, due)
        else:
            self._leap_in_pieces(start_ps, ramp, steps, owned, first, beside, batch, before, due)
        at_first = before + sum(slots for step, slots in due if step == 0) if due else before
        levels = self._levels(first, at_first, beside)
        self._close_row(start_ps, self._end_ps - start_ps, steps, batch, levels, first, beside)

    def _leap_in_pieces(
        self,
        start_ps: int,
        ramp: Ramp,
        steps: int,
        owned: Levels,
        first: PoolUse,
        beside: Beside,
        batch: Batch,
        before: int,
        due: list[tuple[int, int]],
    ) -> None:
        """A leap while an end of the window is to come."""
        for low, high, marked in self._pieces(start_ps, ramp, steps):
            at = start_ps + ramp.until(low)
            if marked:
                internal = before + sum(slots for step, slots in due if step <= low)
                use = owned.use_at(low)
                self._span(at, start_ps + ramp.until(high), self._levels(use, internal, beside), use, beside, batch)
            else:
                self._marks_passed(at)
                self._stretch(ramp, low, high, owned, first, beside, batch, before, due)

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

    def _stretch(
        self,
        ramp: Ramp,
        low: int,
        high: int,
        owned: Levels,
        first: PoolUse,
        beside: Beside,
        batch: Batch,
        before: int,
        due: list[tuple[int, int]],
    ) -> None:
        """Steps low..high-1 of a leap in closed form: all but `used`, what is unwritten, `cached` and `free` stays."""
        end_ps = ramp.until(high)
        time_ps = end_ps - ramp.until(low) if low else end_ps
        self._end_ps += time_ps
        if self._saturated_only and not batch.waiting:
            return
        # Where nothing is kept there are no slots to fill.
        count = batch.decode_tokens if self.pool_slots else 0
        used, external = first.used, beside.external
        used_ps = ramp.weighted(used, count, low, high)
        unwritten_ps = owned.unwritten_sum(high, ramp.first_ps, ramp.rise_ps)
        if low:
            unwritten_ps -= owned.unwritten_sum(low, ramp.first_ps, ramp.rise_ps)
        cached_ps = 0
        if first.cached:
            cached_ps = owned.cached_sum(high, ramp.first_ps, ramp.rise_ps)
            if low:
                cached_ps -= owned.cached_sum(low, ramp.first_ps, ramp.rise_ps)
        internal, internal_ps = before, before * time_ps
        for step, slots in due:
            if step < high:
                internal += slots
                internal_ps += slots * (end_ps - ramp.until(max(step, low)))
        totals = self.totals
        slots_ps = totals.slots_ps
        slots_ps[_USED] += used_ps
        slots_ps[_RESERVED] += unwritten_ps - internal_ps
        slots_ps[_INTERNAL] += internal_ps
        slots_ps[_DEAD] += first.dead * time_ps
        slots_ps[_CACHED] += cached_ps
        slots_ps[_EXTERNAL] += external * time_ps
        slots_ps[_FREE] += (self.pool_slots - external - first.dead) * time_ps - used_ps - unwritten_ps - cached_ps
        at_low = owned.use_at(low) if low else first
        reserved = 0
        # `reserved` rises and falls within a leap; its top is looked for only where it could be a new one.
        if owned.bound > totals.peaks[_RESERVED]:
            bounds, internals = _segments(low, high, before, due)
            tops = (owned.unwritten_peak(*span) for span in pairwise(bounds))
            reserved = max(top - level for top, level in zip(tops, internals, strict=True))
        # What was rounded up beyond an ask is not free to the allocator, and part of `external`.
        free = at_low.free + at_low.rounding - external
        last = used + count * (high - 1)
        totals.reach((last, reserved, internal, first.dead, 0, at_low.cached, external, free))
        if self.has_holes:
            totals.in_holes(time_ps, first, beside.external, batch.waiting > 0)
        if beside is not NOTHING:
            totals.beside(time_ps, beside.shared, beside.duplicate, beside.host)
        totals.tally(time_ps, batch.running, batch.requests, batch.tokens * (high - low))

    # The record.

    def _close_row(
        self, start_ps: int, duration_ps: int, steps: int, batch: Batch, levels: tuple[int, ...], use: PoolUse,
        beside: Beside,
    ) -> None:  # fmt: skip
        if len(self.series) >= self._most:
            self.hand_over()
        stay_ps = self._occupancy.reading(start_ps + duration_ps)
        if not self._saturated_only or batch.waiting:
            self.totals.stay_ps += stay_ps - self._stay_ps
        self._stay_ps = stay_ps
        row_stay_ps, self._row_stay_ps = stay_ps - self._row_stay_ps, stay_ps
        self.steps += steps
        try:
            self.series.frombytes(
                ROW.pack(
                    start_ps, duration_ps, steps, *batch[:6], row_stay_ps, use.largest_hole, use.rounding, *beside[1:],
                    *levels,
                )
            )  # fmt: skip
        except struct.error:
            raise RunError(
                f"from {start_ps / PS_PER_S:.3g} s on {'a step lasts' if steps < 2 else f'{steps:,} steps last'} "
                f"{duration_ps / PS_PER_S:.3g} s, beyond the 64-bit clock ({(1 << 63) / PS_PER_S:.3g} s); "
                "take smaller requests or faster hardware"
            ) from None

    def hand_over(self, *, last: bool = False) -> None:
        """Give the record of steps away, the `last` of it too. Does nothing where it is kept. Mutates."""
        if self._into is None:
            return
        series, self.series = self.series, array("q")
        if self._waited is not None:
            self._waited.add(series)
        self._into.steps(series, self.rests, self.pool_slots, has_holes=self.has_holes, last=last)
        # When the last row ends a rest may begin, which goes into the next piece.
        over_ps = series[-len(SERIES)] + series[1 - len(SERIES)] if series else 0
        self.rests = {time_ps: cached for time_ps, cached in self.rests.items() if time_ps >= over_ps}

    def stretches(self) -> list[tuple[int, int]]:
        """The time in which requests were left waiting as (from, to) in picoseconds; only for a saturated window."""
        assert self._waited is not None
        return self._waited.and_then(self.series)


def _segments(low: int, high: int, before: int, due: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """Where `internal` changes within steps low..high-1, both ends included, and its level in between."""
    bounds, internals, internal = [low], [], before
    for step, slots in due:
        if step >= high:
            break
        if step > bounds[-1]:
            internals.append(internal)
            bounds.append(step)
        internal += slots
    return [*bounds, high], [*internals, internal]
