"""The clock: SimPy's environment in integer picoseconds, and the one kind of event that the engine adds to it.

At one instant everything else comes first (arrivals, cancellations), then the end of a step and the plan of the next,
then the horizon. The order of events at the same time must not depend on when they were scheduled, because a leap
schedules its end much earlier than the steps it replaces would.
"""

import sys
from collections.abc import Callable

from simpy import Environment, Event

ARRIVAL = 1
"""SimPy's NORMAL priority: what comes from outside."""
STEP_END = 2
"""Of the first replica; those of the others come one after the other, so that no two of them are ever tied."""
HORIZON = sys.maxsize


class Clock(Environment):
    """A SimPy environment whose time is an integer number of picoseconds."""

    def __init__(self) -> None:
        super().__init__(initial_time=0)
        self._turn_ps = -1
        self._turn = -1

    def takes_turn(self, number: int) -> None:
        """The steps of the replica with this number that end now end here, and those of all before it have."""
        if self._turn_ps != self.now_ps:
            self._turn_ps, self._turn = self.now_ps, -1
        self._turn = max(self._turn, number)

    def has_had_its_turn(self, number: int) -> bool:
        """Whatever happens now happens after a step of this replica that ends now, whether it is seen to end or not."""
        return self._turn >= number and self._turn_ps == self.now_ps

    @property
    def now_ps(self) -> int:
        """The current time."""
        # SimPy types time as float; integers go through it unchanged.
        return self._now  # type: ignore[return-value]


class At(Event):
    """An event that happens after `delay_ps` with the given priority and then calls `then` with itself."""

    def __init__(self, clock: Clock, delay_ps: int, priority: int, then: Callable[[Event], None]) -> None:
        # As SimPy's own Timeout does: an event that is triggered from the start.
        self.env = clock
        self._ok = True
        self._value = None
        self.callbacks = [then]
        clock.schedule(self, priority, delay_ps)  # type: ignore[arg-type]
