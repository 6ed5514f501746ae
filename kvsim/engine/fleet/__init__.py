"""Several replicas behind a router, on one clock."""

from kvsim.engine.fleet.autoscaler import Scaling
from kvsim.engine.fleet.interface import Member, Router
from kvsim.engine.fleet.routers import ROUTERS
from kvsim.engine.fleet.simulate import FleetLog, Routing, simulate_fleet

__all__ = ["ROUTERS", "FleetLog", "Member", "Router", "Routing", "Scaling", "simulate_fleet"]
