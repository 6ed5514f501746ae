"""Recorded traffic: the rows of a trace as requests at its own rate or another, or whole, with all that it tells."""

from kvsim.workload.trace.files import PACKAGED, trace_path
from kvsim.workload.trace.traffic import TraceTraffic

__all__ = ["PACKAGED", "TraceTraffic", "trace_path"]
