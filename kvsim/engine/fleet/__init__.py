"""Several replicas behind a router, on one clock."""

from kvsim.engine.fleet.interface import Member, Router
from kvsim.engine.fleet.routers import ROUTERS
from kvsim.engine.fleet.simulate import Routing, simulate_fleet

__all__ = ["ROUTERS", "Member", "Router", "Routing", "simulate_fleet"]
