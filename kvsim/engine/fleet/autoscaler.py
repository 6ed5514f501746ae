"""How many replicas take requests: more when their pools or queues fill, fewer when they empty."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Literal, NamedTuple

from simpy import Event

from kvsim.engine.clock import ARRIVAL, At, Clock
from kvsim.engine.replica import Replica


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """The rule of Kubernetes' Horizontal Pod Autoscaler, asked every `interval_ps`.

    Of n replicas that take requests, with `value` the mean of `metric` over them, ceil(n x value / target) are wanted,
    and no change where value / target is within `tolerance` of 1; never fewer than `least` or more than there are. A
    replica more takes its first request `start_up_ps` later, with an empty cache; one fewer is let go only when none
    more was wanted over the last `settle_ps`, serves to the end whom it has, and leaves nothing cached.
    Source: kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale (algorithm, default tolerance and
    stabilization window; Apache-2.0 and CC BY 4.0).
    """

    metric: Literal["kv_use", "waiting"]
    target: float
    """Of `kv_use` a share of the pool from 0 to 1, of `waiting` sequences a replica."""
    least: int
    interval_ps: int
    start_up_ps: int
    settle_ps: int
    tolerance: float


class Change(NamedTuple):
    """From when on how many replicas are ordered, and how many of them take requests."""

    time_ps: int
    ordered: int
    ready: int


class Autoscaler:
    """Counts the replicas that take requests: always the first ones, so that whoever hashes moves few."""

    def __init__(self, clock: Clock, replicas: Sequence[Replica], scaling: Scaling, over: Callable[[], bool]) -> None:
        self.ready = scaling.least
        """How many take requests now."""
        self.changes = [Change(0, scaling.least, scaling.least)]
        self._clock = clock
        self._replicas = replicas
        self._scaling = scaling
        self._over = over
        self._ordered = scaling.least
        """Ready ones and those that start up."""
        self._wanted: deque[tuple[int, int]] = deque()
        self._paid_ps = [0] * len(replicas)
        self._since_ps: dict[int, int] = dict.fromkeys(range(scaling.least), 0)
        """Those that are paid for, and from when on."""
        self._due_ps: dict[int, int] = {}
        """Those that start up, and when they have; of one that was called off and ordered again, the later start."""
        At(clock, scaling.interval_ps, ARRIVAL, self._ask)

    def left(self) -> None:
        """A request has ended: one that was let go and has nobody left is paid for no longer. Mutates."""
        if len(self._since_ps) > self._ordered:
            self._let_go()

    def paid_ps(self, end_ps: int) -> list[int]:
        """For how long each replica has been paid for by `end_ps`, starting and emptying included."""
        since = self._since_ps
        return [paid + (end_ps - since[number] if number in since else 0) for number, paid in enumerate(self._paid_ps)]

    def _ask(self, _: Event) -> None:
        if self._over():
            return
        scaling, now = self._scaling, self._clock.now_ps
        ratio = self._value() / scaling.target
        most = len(self._replicas)
        wanted = self._ordered if abs(ratio - 1) <= scaling.tolerance else ceil(min(self.ready * ratio, most))
        wanted = max(wanted, scaling.least)
        self._wanted.append((now, wanted))
        while self._wanted[0][0] < now - scaling.settle_ps:
            self._wanted.popleft()
        if wanted > self._ordered:
            for number in range(self._ordered, wanted):
                self._since_ps.setdefault(number, now)
                self._start(number)
            self._ordered = wanted
            self._note()
        else:
            settled = max(most for _, most in self._wanted)
            if settled < self._ordered:
                self._ordered = settled
                self.ready = min(self.ready, settled)
                self._let_go()
                self._note()
        At(self._clock, scaling.interval_ps, ARRIVAL, self._ask)

    def _start(self, number: int) -> None:
        self._due_ps[number] = self._clock.now_ps + self._scaling.start_up_ps

        def starts(_: Event) -> None:
            # Unless it was called off in between.
            if self._due_ps.get(number) == self._clock.now_ps and self.ready == number < self._ordered:
                del self._due_ps[number]
                self._replicas[number].start_up()
                self.ready = number + 1
                self._note()

        At(self._clock, self._scaling.start_up_ps, ARRIVAL, starts)

    def _let_go(self) -> None:
        now = self._clock.now_ps
        for number in [one for one in self._since_ps if one >= self._ordered and not self._replicas[one].live]:
            self._paid_ps[number] += now - self._since_ps.pop(number)
            self._replicas[number].shut_down()

    def _value(self) -> float:
        ready = self._replicas[: self.ready]
        if self._scaling.metric == "kv_use":
            return sum(one.held_slots / one.allocator.pool_slots for one in ready) / len(ready)
        return sum(one.scheduler.waiting_count for one in ready) / len(ready)

    def _note(self) -> None:
        self.changes.append(Change(self._clock.now_ps, self._ordered, self.ready))
