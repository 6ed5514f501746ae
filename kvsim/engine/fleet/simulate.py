"""One run of a fleet: requests come in, a router hands them to replicas, each is recorded by itself."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from kvsim.engine.arrivals import After
from kvsim.engine.fleet.autoscaler import Change, Scaling
from kvsim.engine.fleet.caches import FleetCaches
from kvsim.engine.fleet.fleet import Fleet
from kvsim.engine.fleet.forgetting import Forgetting
from kvsim.engine.fleet.interface import Caches, Router
from kvsim.engine.live import OnEnd, Over
from kvsim.engine.replica import Replica
from kvsim.engine.run import Conditions, RunLog, World
from kvsim.metrics.requests import Ended
from kvsim.metrics.tables import Pieces
from kvsim.request import Request
from kvsim.scheduling.interface import Scheduler
from kvsim.timing.interface import StepTiming


@dataclass(slots=True)
class FleetLog:
    """What a run of a fleet leaves behind."""

    replicas: list[RunLog]
    changes: list[Change]
    """How many replicas there were, where an autoscaler says; else none."""
    paid_ps: list[int] | None
    """For how long each replica had to be there, where an autoscaler says; None: for the whole run."""


@dataclass(frozen=True, slots=True)
class Routing:
    """How to make a router: `make` is given the caches of the fleet where it `follows_caches`, and None elsewhere."""

    make: Callable[[Caches | None], Router]
    stateless: bool = False
    follows_caches: bool = False
    scaling: Scaling | None = None
    """How many replicas take requests; None: all of them."""

    @property
    def apart(self) -> bool:
        """Replicas do not know of each other."""
        return self.stateless and self.scaling is None


def simulate_fleet(
    requests: Iterable[Request],
    replicas: int,
    scheduler: Callable[[], Scheduler],
    timing: StepTiming,
    routing: Routing,
    conditions: Conditions,
    *,
    only: Sequence[int] | None = None,
    on_end: OnEnd | None = None,
    after: After | None = None,
    over: Over | None = None,
    pieces: Callable[[int], Pieces | None] = lambda _: None,
) -> FleetLog:
    """Serve `requests` (in order of arrival) by so many `replicas`, each with a `scheduler` of its own.

    `only` simulates some of the replicas, and leaves out what goes to others: ValueError unless `routing.apart` and
    nothing comes `after` something else, so that a replica does not know of the others. Each is then the
    same, to the bit, as in the whole fleet. The rest is as for `simulate`; `over` is asked of those that go elsewhere,
    too, and `pieces` gives where the records of a replica go.
    """
    if only is not None and not (routing.apart and after is None):
        raise ValueError(
            "only: replicas can be simulated apart only where the router is stateless, nobody scales the fleet, and "
            "requests come by themselves"
        )

    def ended(record: Ended) -> None:
        fleet.ended()
        if on_end is not None:
            on_end(record)

    engines = {number: scheduler() for number in (range(replicas) if only is None else only)}
    caches: FleetCaches | None = None
    if routing.follows_caches:
        caches = FleetCaches(replicas, block_tokens=engines[0].allocator.capacity(1))
    here: dict[int, Replica] = {}
    forgetting = None if over is None else Forgetting(over, here, caches)
    world = World(requests, conditions, after, ended, None if forgetting is None else forgetting.ended)
    for number, engine in engines.items():
        follower = None if caches is None else caches.follower(number)
        here[number] = world.replica(engine, timing, number=number, pieces=pieces(number), follower=follower)
    fleet = Fleet(
        replicas,
        here,
        routing.make(caches),
        closed=after is not None,
        scaling=routing.scaling,
        clock=world.clock,
        forgetting=forgetting,
    )
    world.serve(fleet, list(here.values()))
    # From when on all that is measured can have happened to a replica: the same whoever is simulated beside it.
    least_ps = max(fleet.last_arrival_ps, conditions.warmup_ps)
    if conditions.horizon_ps is not None:
        least_ps = min(least_ps, conditions.horizon_ps)
    for replica in here.values():
        replica.recording.over(max(replica.end_ps, least_ps))
    logs = [RunLog(replica.recording, replica.end_ps, fleet.last_arrival_ps) for replica in here.values()]
    scaler = fleet.autoscaler
    if scaler is None:
        return FleetLog(logs, [], None)
    return FleetLog(logs, scaler.changes, scaler.paid_ps(max(log.end_ps for log in logs)))
