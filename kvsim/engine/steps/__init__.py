"""Steps and leaps: what is planned, how it begins, and what is in flight until it ends."""

from kvsim.engine.steps.flight import Flight
from kvsim.engine.steps.plans import Plans
from kvsim.engine.steps.progress import ProgressWatch
from kvsim.engine.steps.takeoff import Takeoff

__all__ = ["Flight", "Plans", "ProgressWatch", "Takeoff"]
