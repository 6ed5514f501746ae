"""The eight classes of the accounting identity integrated over the measured window, exactly, stretch by stretch."""

from kvsim.errors import CheckError
from kvsim.metrics.memory.levels import NOBODY, NOTHING, Batch, Beside
from kvsim.metrics.window import Occupancy, Totals
from kvsim.step import CLASSES, PoolUse


class WindowIntegrals:
    """Slots by class over time, exact: Python integers in slots x picoseconds.

    `window` says what counts: "auto" and "last_finish" everything from `open` on (`close` freezes a copy), and
    "saturated" only the steps before which requests were left waiting. `has_holes`: free slots can be lost to shape.
    """

    def __init__(
        self, pool_slots: int, occupancy: Occupancy, *, window: str = "auto", check: bool = False,
        has_holes: bool = False,
    ) -> None:  # fmt: skip
        self.pool_slots = pool_slots
        self.has_holes = has_holes
        self.totals = Totals()
        self.closed: Totals | None = None
        """The sums up to the last arrival; None where the warm-up outlasts the arrivals."""
        self.opened_ps = 0
        self.rests: dict[int, int] = {}
        """From when on nothing runs (picoseconds): slots that stay cached, where there are any."""
        self._cached = 0
        self._occupancy = occupancy
        self._saturated_only = window == "saturated"
        self._check = check
        self._open_ps: int | None = None
        self._open_stay_ps = 0
        self._close_ps: int | None = None
        self._close_stay_ps = 0
        self._stay_ps = 0
        self._end_ps = 0

    # The window.

    def open(self, now_ps: int) -> None:
        """The warm-up ends at `now_ps`: forget what was added up before it."""
        self._open_stay_ps = self._occupancy.reading(now_ps)
        self._open_ps = now_ps

    def close(self, now_ps: int) -> None:
        """The last request arrives at `now_ps`: a copy of the sums up to here is kept in `closed`.

        A saturated window has no such end: it is wherever the queue is not empty.
        """
        if self._saturated_only:
            return
        self._close_stay_ps = self._occupancy.reading(now_ps)
        self._close_ps = now_ps

    def finish(self, now_ps: int) -> None:
        """The run is over."""
        if now_ps > self._end_ps:
            self._idle_until(now_ps)
        self._marks_passed(now_ps)

    def until(self, now_ps: int) -> Totals:
        """The sums as they stand at `now_ps`, which is not before the end of the run: from then on nothing happens."""
        totals, idle_ps = self.totals.copy(), now_ps - max(self._end_ps, self.opened_ps)
        if idle_ps > 0:
            levels = self._idle_levels
            totals.slots_ps = [sum_ps + level * idle_ps for sum_ps, level in zip(totals.slots_ps, levels, strict=True)]
            totals.reach(levels)
            totals.tally(idle_ps, 0, 0, 0)
        return totals

    @property
    def _idle_levels(self) -> tuple[int, ...]:
        return 0, 0, 0, 0, 0, self._cached, 0, self.pool_slots - self._cached

    def _marks_passed(self, now_ps: int) -> None:
        """Act on the ends of the window that lie at or before `now_ps`."""
        if self._open_ps is not None and self._open_ps <= now_ps:
            self.opened_ps, self._open_ps = self._open_ps, None
            self.totals = Totals()
            self._stay_ps = self._open_stay_ps
            self.closed = None
        if self._close_ps is not None and self._close_ps <= now_ps:
            if self._open_ps is None and self.opened_ps <= self._close_ps:
                self.closed = self.totals.copy()
                self.closed.stay_ps += self._close_stay_ps - self._stay_ps
            self._close_ps = None

    # Nothing runs.

    def rest(self, now_ps: int, cached_slots: int) -> None:
        """Nothing runs from now on; all slots are free but those that stay cached."""
        self._cached = cached_slots
        if cached_slots:
            self.rests[now_ps] = cached_slots

    def emptied(self, now_ps: int) -> None:
        """Nothing is cached from now on; nothing runs either."""
        if now_ps > self._end_ps:
            self._idle_until(now_ps)
        if self._cached:
            # Whoever turns rests into rows sees a change in the middle of one by its nothing.
            self.rests[now_ps] = 0
        self._cached = 0

    def _idle_until(self, now_ps: int) -> None:
        cached, free = self._cached, self.pool_slots - self._cached
        use = PoolUse(0, 0, 0, 0, cached, free, free)
        self._span(self._end_ps, now_ps, self._idle_levels, use, NOTHING, NOBODY)

    # Something runs.

    def _levels(self, use: PoolUse, internal: int, beside: Beside) -> tuple[int, ...]:
        used, unwritten, dead, moving, cached, available, _, rounding = use
        external = beside.external
        free = self.pool_slots - used - unwritten - dead - moving - cached - external
        levels = (used, unwritten - internal, internal, dead, moving, cached, external, free)
        if self._check and (min(levels) < 0 or free != available + rounding - external):
            classes = ", ".join(f"{name} {level}" for name, level in zip(CLASSES, levels, strict=True))
            raise CheckError(
                f"the classes of the accounting identity do not hold for the {self.pool_slots} slots: {classes}; "
                f"the allocator says {use.free} are free"
            )
        return levels

    def _span(
        self, start_ps: int, end_ps: int, levels: tuple[int, ...], use: PoolUse, beside: Beside, batch: Batch
    ) -> None:
        """Constant levels from start to end; the tokens come at the end."""
        self._marks_passed(start_ps)
        at = start_ps
        marks = (self._open_ps, self._close_ps)
        if marks != (None, None):
            for mark in sorted(m for m in marks if m is not None and start_ps < m < end_ps):
                self._add(mark - at, levels, use, beside, batch, 0)
                self._marks_passed(mark)
                at = mark
        self._add(end_ps - at, levels, use, beside, batch, batch.tokens)
        self._end_ps = end_ps

    def _add(
        self, time_ps: int, levels: tuple[int, ...], use: PoolUse, beside: Beside, batch: Batch, tokens: int
    ) -> None:
        if not time_ps or (self._saturated_only and not batch.waiting):
            return
        totals = self.totals
        slots_ps, peaks = totals.slots_ps, totals.peaks
        for index, level in enumerate(levels):
            if level:
                slots_ps[index] += level * time_ps
                if level > peaks[index]:
                    peaks[index] = level
        if self.has_holes:
            totals.in_holes(time_ps, use, beside.external, batch.waiting > 0)
        if beside is not NOTHING:
            totals.beside(time_ps, beside.shared, beside.duplicate, beside.host)
        totals.tally(time_ps, batch.running, batch.requests, tokens)
