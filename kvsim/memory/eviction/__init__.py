"""What-ifs: policies of eviction over the blocks of a whole trace, exact, at one size each or (LRU) at all at once.

Engines evict by rules of their own, in the rooms of their allocators; here one rule at a time meets one trace.
"""

from collections.abc import Callable, Sequence

from kvsim.memory.eviction.fifo import Fifo
from kvsim.memory.eviction.interface import Blocks, Cache
from kvsim.memory.eviction.length_aware import LengthAware
from kvsim.memory.eviction.lfu import Lfu
from kvsim.memory.eviction.lru import Lru, LruHeadFirst
from kvsim.memory.eviction.optimal import Optimal
from kvsim.memory.eviction.s3_fifo import S3Fifo

POLICIES: dict[str, Callable[[int, Sequence[Blocks]], Cache]] = {
    "lru": lambda capacity_blocks, prompts: Lru(capacity_blocks),
    "lru-head-first": lambda capacity_blocks, prompts: LruHeadFirst(capacity_blocks),
    "lfu": lambda capacity_blocks, prompts: Lfu(capacity_blocks),
    "fifo": lambda capacity_blocks, prompts: Fifo(capacity_blocks),
    "length-aware": lambda capacity_blocks, prompts: LengthAware(capacity_blocks),
    "s3-fifo": lambda capacity_blocks, prompts: S3Fifo(capacity_blocks),
    "optimal": Optimal,
}
"""Policies by name: an empty cache for so many blocks, about to serve these prompts in order."""
