"""Whether a fleet goes together with its router and with what is measured."""

from collections.abc import Iterator

from kvsim.scenario.messages import Mistake
from kvsim.scenario.reading.loading import Plain

_OF_PREFIX_AWARE = ("min_match", "imbalance_requests", "imbalance_ratio")


def fleet_mistakes(data: Plain) -> Iterator[Mistake]:
    """Yield options that the router does not have, scaling that cannot be, and a window that is no common one."""
    fleet, window = data.get("fleet"), data.get("window")
    if not isinstance(fleet, dict):
        return
    router = fleet.get("router")
    if isinstance(router, dict) and router.get("name", "round-robin") != "prefix-aware":
        for key in _OF_PREFIX_AWARE:
            if router.get(key) is not None:
                name = router.get("name", "round-robin")
                remedy = "leave it out, or set fleet.router.name: prefix-aware"
                yield Mistake(f"fleet.router.{key}", router[key], f"is nothing that {name} knows of", remedy)
    allocator = data.get("allocator")
    keeps_none = isinstance(allocator, dict) and allocator.get("name") == "no-cache"
    if keeps_none and isinstance(router, dict) and router.get("name") == "least-kv":
        problem = "goes by the KV that replicas hold, and allocator no-cache keeps none: it would be round-robin"
        yield Mistake("fleet.router", "least-kv", problem, "write least-requests or round-robin")
    rule, most = fleet.get("autoscale"), fleet.get("replicas")
    if isinstance(rule, dict):
        least, target = rule.get("min_replicas", 1), rule.get("target")
        if isinstance(least, int) and isinstance(most, int) and least > most:
            remedy = f"write {most} or fewer, or raise fleet.replicas"
            yield Mistake("fleet.autoscale.min_replicas", least, f"is more than fleet.replicas, {most}", remedy)
        if rule.get("metric", "kv_use") == "kv_use" and isinstance(target, int | float) and target > 1:
            problem = "is more than the whole pool"
            yield Mistake("fleet.autoscale.target", target, problem, "write a share such as 0.6")
        if keeps_none and rule.get("metric") in (None, "kv_use"):
            problem = "is the share of a pool, and allocator no-cache keeps none"
            yield Mistake("fleet.autoscale.metric", "kv_use", problem, "write waiting, or use another allocator")
    if isinstance(window, dict) and window.get("until") == "saturated":
        problem = "is given for a fleet, whose replicas have their queues at different times"
        yield Mistake("window.until", "saturated", problem, "write auto or last_finish")
