"""A record of a prefix cache: what it tells, with the time at which it happens."""

from kvsim.engine.prefixes.watch import CacheWatch, Follower

__all__ = ["CacheWatch", "Follower"]
