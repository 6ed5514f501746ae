"""Memory over time: slots by class of the accounting identity, integrated exactly over steps and leaps."""

from kvsim.metrics.memory.address_log import AddressLog
from kvsim.metrics.memory.levels import NOTHING, SERIES, Batch, Beside, Levels
from kvsim.metrics.memory.ramp import Ramp
from kvsim.metrics.memory.recorder import MemoryRecorder

__all__ = ["NOTHING", "SERIES", "AddressLog", "Batch", "Beside", "Levels", "MemoryRecorder", "Ramp"]
