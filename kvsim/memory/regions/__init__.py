"""What `contiguous` and `reserve` share: one region of real addresses per sequence."""

from kvsim.memory.regions.allocator import RegionAllocator

__all__ = ["RegionAllocator"]
