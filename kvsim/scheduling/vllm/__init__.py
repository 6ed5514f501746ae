"""vLLM's scheduler request by request: prefix hits, two batches in flight, drafts, priorities, windows.

`ContinuousScheduler` states the same rules for whole batches that decode one token a step. Here every request is
followed by itself, as far as the engine's batches may differ from one another: with drafts a step writes a different
number of tokens for each, and with two batches in flight what is scheduled and what is known are two numbers.
"""

from kvsim.scheduling.vllm.batch import Batch, Emitted, Followed
from kvsim.scheduling.vllm.rules import Rules
from kvsim.scheduling.vllm.scheduler import RequestScheduler

__all__ = ["Batch", "Emitted", "Followed", "RequestScheduler", "Rules"]
