"""Which leaf goes first: the one of least worth. A policy is a function of a leaf; time breaks every tie.

SGLang's names (`--radix-eviction-policy`, 0.5.23). A leaf that was touched later has the larger stamp.
"""

from collections.abc import Callable

from kvsim.memory.radix.node import Node

Worth = tuple[int, ...]

_OFTEN = 2
"""Hits from which `slru` protects a leaf (SGLang's `protected_threshold`)."""


def lru(leaf: Node) -> Worth:
    """The one not touched for longest."""
    return (leaf.stamp,)


def mru(leaf: Node) -> Worth:
    """The one touched last."""
    return (-leaf.stamp,)


def lfu(leaf: Node) -> Worth:
    """The one that the fewest requests brought."""
    return (leaf.hits, leaf.stamp)


def fifo(leaf: Node) -> Worth:
    """The one that came in first."""
    return (leaf.created, leaf.stamp)


def filo(leaf: Node) -> Worth:
    """The one that came in last."""
    return (-leaf.created, leaf.stamp)


def priority(leaf: Node) -> Worth:
    """The one of least priority."""
    return (leaf.priority, leaf.stamp)


def slru(leaf: Node) -> Worth:
    """Those that only one request brought, before all others."""
    return (int(leaf.hits >= _OFTEN), leaf.stamp)


POLICIES: dict[str, Callable[[Node], Worth]] = {
    "lru": lru,
    "mru": mru,
    "lfu": lfu,
    "fifo": fifo,
    "filo": filo,
    "priority": priority,
    "slru": slru,
    # Tail-optimised LRU evicts beyond a latency budget first; with SGLang's default budget of nothing that is LRU.
    "tlru": lru,
}
