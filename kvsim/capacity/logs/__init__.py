"""Start-up logs of vLLM, SGLang and TensorRT-LLM, read back into numbers: one file per engine."""

from kvsim.capacity.logs.printed import Printed
from kvsim.capacity.logs.read import read_log
from kvsim.capacity.logs.startup import REASON_CLASSES, StartupLog

__all__ = ["REASON_CLASSES", "Printed", "StartupLog", "read_log"]
