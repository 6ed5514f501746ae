"""Blocks whose content is known and can be hit again: vLLM's prefix caching, block by block."""

from kvsim.memory.prefix.allocator import PrefixAllocator
from kvsim.memory.prefix.full import FullGroup
from kvsim.memory.prefix.group import Group
from kvsim.memory.prefix.holdings import Holding, Holdings, Want
from kvsim.memory.prefix.lookup import Hit
from kvsim.memory.prefix.pool import BlockPool
from kvsim.memory.prefix.sliding import SlidingGroup

__all__ = ["BlockPool", "FullGroup", "Group", "Hit", "Holding", "Holdings", "PrefixAllocator", "SlidingGroup", "Want"]
