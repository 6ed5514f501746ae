"""The one kind of event the engine adds to SimPy: the end of a step.

At one instant everything else comes first (arrivals, cancellations), then the end of a step and the plan of the next,
then the horizon. The order of events at the same time must not depend on when they were scheduled, because a leap
schedules its end much earlier than the steps it replaces would.
"""

from collections.abc import Callable

from simpy import Environment, Event

STEP_END = 2
"""Priority below SimPy's NORMAL (1)."""
HORIZON = 3


class At(Event):
    """An event that happens after `delay_ps` with the given priority and then calls `then` with itself."""

    def __init__(self, env: Environment, delay_ps: int, priority: int, then: Callable[[Event], None]) -> None:
        super().__init__(env)
        self._ok = True
        self._value = None
        assert self.callbacks is not None
        self.callbacks.append(then)
        # SimPy types delays and times as float; integers pass through unchanged.
        env.schedule(self, priority, delay_ps)  # type: ignore[arg-type]
