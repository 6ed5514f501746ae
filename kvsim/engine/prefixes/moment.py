"""When a pool changes: now, or, while a leap is applied, when the step began at which the decode clock stands."""

from kvsim.engine.clock import Clock
from kvsim.metrics.memory import Ramp
from kvsim.step import DecodeSet


class Moment:
    """The time of a change in picoseconds, the same whether the engine leaps or not."""

    def __init__(self, clock: Clock, decodes: DecodeSet) -> None:
        self._clock = clock
        self._decodes = decodes
        self._ramp: Ramp | None = None
        self._start_ps = 0
        self._first = 0

    def __call__(self) -> int:
        """The time of what changes right now."""
        if self._ramp is None:
            return self._clock.now_ps
        return self._start_ps + self._ramp.until(self._decodes.clock - self._first)

    def leap(self, start_ps: int, ramp: Ramp, first: int) -> None:
        """A leap is applied from here on: its step j begins as `ramp` says and with the decode clock at `first` + j."""
        self._start_ps, self._ramp, self._first = start_ps, ramp, first

    def land(self) -> None:
        """It is applied."""
        self._ramp = None
