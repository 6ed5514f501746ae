"""Routers by name: how to make the one that a scenario asks for."""

from typing import Any

from kvsim.engine.fleet import ROUTERS, Routing, Scaling
from kvsim.engine.fleet.interface import Caches, Router
from kvsim.scenario.schema.fleet import FleetSettings

_SEEDED = ("random", "power-of-two", "session-affinity")


def routing_of(fleet: FleetSettings, *, seed: int, caches: bool) -> Routing:
    """How the router of this fleet is made, with `seed` where it draws. ValueError where nothing caches for it."""
    name: str = fleet.router.name
    kind: Any = ROUTERS[name]
    if kind.follows_caches and not caches:
        raise ValueError(
            "fleet.router.name: prefix-aware goes by what replicas have cached, and these cache nothing; set "
            "allocator.prefix_caching: true, or use another router"
        )
    options: dict[str, Any] = {"seed": seed} if name in _SEEDED else {}
    options |= {key: value for key, value in fleet.router.model_dump(exclude={"name"}).items() if value is not None}

    def make(found: Caches | None) -> Router:
        router: Router = kind(found, **options) if kind.follows_caches else kind(**options)
        return router

    return Routing(make, stateless=kind.stateless, follows_caches=kind.follows_caches, scaling=_scaling(fleet))


def _scaling(fleet: FleetSettings) -> Scaling | None:
    rule = fleet.autoscale
    if rule is None:
        return None
    return Scaling(
        metric=rule.metric,
        target=rule.target,
        least=rule.min_replicas,
        interval_ps=rule.interval,
        start_up_ps=rule.start_up,
        settle_ps=rule.settle,
        tolerance=rule.tolerance,
    )
