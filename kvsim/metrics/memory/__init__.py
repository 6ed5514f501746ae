"""Memory over time: slots by class of the accounting identity, integrated exactly over steps and leaps."""

from kvsim.metrics.memory.ramp import Ramp
from kvsim.metrics.memory.recorder import SERIES, Batch, Levels, MemoryRecorder

__all__ = ["SERIES", "Batch", "Levels", "MemoryRecorder", "Ramp"]
