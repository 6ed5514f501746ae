"""The prefix cache is emptied at stated times, as by whoever restarts an engine or loads new weights into it."""

from collections.abc import Iterable, Iterator

from simpy import Event

from kvsim.engine.clock import ARRIVAL, At
from kvsim.engine.replica import Replica


class Flushes:
    """Asks for the cache to be emptied at `times_ps`, which rise and may have no end.

    An engine listens between steps, and refuses while anybody uses the cache. With `waits` it is asked again after each
    step until it does not.
    """

    def __init__(self, times_ps: Iterable[int], *, waits: bool = True) -> None:
        self._times_ps: Iterator[int] = iter(times_ps)
        self._waits = waits
        self._pending: list[int] = []
        """When the cache was to be emptied and was not."""
        self._replica: Replica | None = None

    def begin(self, replica: Replica) -> None:
        """Let the times come. Mutates."""
        self._replica = replica
        self._arm(replica)

    def over(self) -> None:
        """The run is over: what was asked for and not done by then never will be. Mutates."""
        replica, self._replica = self._replica, None
        assert replica is not None
        self._give_up(replica)
        replica.between_steps = None

    def _arm(self, replica: Replica) -> None:
        time_ps = next(self._times_ps, None)
        if time_ps is not None:
            At(replica.clock, time_ps - replica.clock.now_ps, ARRIVAL, self._due)

    def _due(self, event: Event) -> None:
        replica = self._replica
        assert replica is not None
        if replica.over:
            return
        self._pending.append(replica.clock.now_ps)
        if replica.computes_in_vain:
            replica.between_steps = self._ask
        else:
            self._ask()
        self._arm(replica)

    def _ask(self) -> None:
        replica = self._replica
        assert replica is not None
        if replica.scheduler.flush():
            for asked_ps in self._pending:
                replica.recording.emptied(asked_ps, replica.clock.now_ps)
            self._pending.clear()
        elif not self._waits:
            self._give_up(replica)
        replica.between_steps = self._ask if self._pending else None

    def _give_up(self, replica: Replica) -> None:
        replica.recording.flushes += [(asked_ps, None) for asked_ps in self._pending]
        self._pending.clear()
