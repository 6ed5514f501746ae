"""A fleet: where requests come in, and which replica each of them goes to."""

from collections.abc import Mapping

from kvsim.engine.clock import Clock
from kvsim.engine.fleet.autoscaler import Autoscaler, Scaling
from kvsim.engine.fleet.forgetting import Forgetting
from kvsim.engine.fleet.interface import Router
from kvsim.engine.replica import Replica
from kvsim.request import Request


class Fleet:
    """A door (see `Door`) before `count` replicas, of which `replicas` are here, by number.

    What goes to one of the others is left out; then the router must be one without state. In a `closed` loop more may
    come to any of them as long as there is somebody in one of them. With `scaling` only the first of them take
    requests, as many as an autoscaler on `clock` says. `forgetting` is told who goes where.
    """

    def __init__(
        self,
        count: int,
        replicas: Mapping[int, Replica],
        router: Router,
        *,
        closed: bool,
        scaling: Scaling | None = None,
        clock: Clock | None = None,
        forgetting: Forgetting | None = None,
    ) -> None:
        self._replicas = replicas
        self._forgetting = forgetting
        self._router = router
        self._closed = closed
        self._exhausted = False
        self.last_arrival_ps = 0
        """Of whatever came, whoever got it."""
        self._members = [Seat(number, replicas.get(number)) for number in range(count)]
        self.autoscaler: Autoscaler | None = None
        if scaling is not None and clock is not None:
            self.autoscaler = Autoscaler(clock, list(replicas.values()), scaling, self._over)

    def submit(self, request: Request) -> None:
        """See `Door`."""
        self.last_arrival_ps = request.arrival_ps
        members = self._members if self.autoscaler is None else self._members[: self.autoscaler.ready]
        number = self._router.choose(request, members).number
        replica, forgetting = self._replicas.get(number), self._forgetting
        if replica is not None:
            if forgetting is not None:
                forgetting.comes(request, number)
            replica.submit(request)
        elif forgetting is not None:
            forgetting.goes_elsewhere(request)

    def no_more(self) -> None:
        """See `Door`."""
        self._exhausted = True
        for replica in self._replicas.values():
            replica.recording.memory.close(replica.clock.now_ps)
        if not self._closed or self._over():
            self._exhaust()

    def more_come(self) -> None:
        """See `Door`."""
        self._exhausted = False

    def ended(self) -> None:
        """A request has ended in one of them, and what comes because of it is known. Mutates."""
        if self.autoscaler is not None:
            self.autoscaler.left()
        if self._closed and self._over():
            self._exhaust()

    def _over(self) -> bool:
        return self._exhausted and not any(replica.live for replica in self._replicas.values())

    def _exhaust(self) -> None:
        for replica in self._replicas.values():
            replica.exhaust()


class Seat:
    """A replica as its router sees it (a `Member`)."""

    __slots__ = ("_replica", "number")

    def __init__(self, number: int, replica: Replica | None) -> None:
        self.number = number
        self._replica = replica

    @property
    def requests(self) -> int:
        """See `Member`."""
        assert self._replica is not None
        return len(self._replica.live)

    @property
    def held_slots(self) -> int:
        """See `Member`."""
        assert self._replica is not None
        return self._replica.held_slots
