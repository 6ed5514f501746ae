"""What others may learn of a cache while it works: what comes in, what is found, what goes."""

from kvsim.memory.residency.interface import CacheListener, Piece

__all__ = ["CacheListener", "Piece"]
