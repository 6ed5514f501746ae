"""The summary of a run, or of a fleet as of one engine: from recorders to the numbers that people read."""

from kvsim.metrics.summary.numbers import metrics, pools
from kvsim.metrics.summary.run import Moved, Run, Slo, measured, stretches
from kvsim.metrics.summary.values import shares, spread

__all__ = ["Moved", "Run", "Slo", "measured", "metrics", "pools", "shares", "spread", "stretches"]
