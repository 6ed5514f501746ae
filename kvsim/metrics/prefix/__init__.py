"""What became of what was cached: how far apart its uses are, how long it stays, what is wanted after it has gone."""

from kvsim.metrics.prefix.kv_events import KvEventLog
from kvsim.metrics.prefix.numbers import Reuse, prefix_metrics
from kvsim.metrics.prefix.residency import Residency

__all__ = ["KvEventLog", "Residency", "Reuse", "prefix_metrics"]
