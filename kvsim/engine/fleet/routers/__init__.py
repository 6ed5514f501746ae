"""Routers by the name that a scenario gives them: one file each."""

from collections.abc import Mapping

from kvsim.engine.fleet.interface import RouterKind
from kvsim.engine.fleet.routers.least_kv import LeastKv
from kvsim.engine.fleet.routers.least_requests import LeastRequests
from kvsim.engine.fleet.routers.power_of_two import PowerOfTwo
from kvsim.engine.fleet.routers.prefix_aware import PrefixAware
from kvsim.engine.fleet.routers.random import Random
from kvsim.engine.fleet.routers.round_robin import RoundRobin
from kvsim.engine.fleet.routers.session_affinity import SessionAffinity

ROUTERS: Mapping[str, RouterKind] = {
    "round-robin": RoundRobin,
    "random": Random,
    "least-requests": LeastRequests,
    "least-kv": LeastKv,
    "power-of-two": PowerOfTwo,
    "session-affinity": SessionAffinity,
    "prefix-aware": PrefixAware,
}
