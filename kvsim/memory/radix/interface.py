"""The seam between a prefix cache and those who use it; `NoTree` is the cache that keeps nothing.

Keys are content (runs of streams). Room is in tokens, one slot each, and only whole pages are ever kept. Whoever
computes tokens takes slots from the pool itself; `insert` hands them over to the cache, which gives back duplicates.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import NamedTuple

from kvsim.content import Content
from kvsim.memory.radix.node import Node
from kvsim.memory.radix.pool import SlotPool
from kvsim.memory.residency import CacheListener


class Match(NamedTuple):
    """What the cache holds of a key, from its start."""

    tokens: int
    """Tokens on the device."""
    node: Node
    """Where they end: what to lock."""
    host_tokens: int
    """Tokens that follow in host memory alone."""
    host_node: Node
    """Where those end."""


class Insertion(NamedTuple):
    """What became of a key."""

    found: int
    """Tokens that the tree had already."""
    node: Node
    """Where the key ends now."""


class PrefixTree(ABC):
    """Keeps the KV of prefixes for reuse."""

    pool: SlotPool
    root: Node
    shares: bool
    """Something can ever be found here."""
    evictable_tokens: int
    """Tokens on the device that no lock protects."""
    protected_tokens: int
    """Tokens on the device below a lock."""
    listener: CacheListener | None = None
    """Told what comes onto the device and leaves it; its pieces are nodes. Whoever admits tells what is found."""

    @property
    def tokens(self) -> int:
        """Tokens that the cache holds on the device. Pure; O(1)."""
        return self.evictable_tokens + self.protected_tokens

    @abstractmethod
    def match(self, key: Content, limit: int | None = None) -> Match:
        """The longest cached prefix of the first `limit` tokens of `key`, in whole pages.

        Mutates: the path found is touched, deepest last, and an edge inside which it ends is split there.
        O(runs of the key).
        """

    @abstractmethod
    def find(self, key: Content, limit: int | None = None) -> list[tuple[Node, int]]:
        """What `match` would find on the device: the edges from the root on, and tokens of each. Pure; O(runs)."""

    @abstractmethod
    def insert(
        self, key: Content, *, limit: int | None = None, owned: int = 0, counted: int = 0, priority: int = 0
    ) -> Insertion:
        """Keep the whole pages of the first `limit` tokens of `key`; the inserter holds slots for all of them.

        The first `owned` tokens are the cache's already. Of the rest, what the cache has besides goes back to the
        pool as a duplicate, and what is new becomes one leaf. The path is touched, takes on `priority` if that is
        higher, and counts a hit on each node that reaches beyond the first `counted` tokens. Mutates; O(runs).
        """

    @abstractmethod
    def lock(self, node: Node) -> None:
        """Protect `node` and all above it from eviction, until as many `unlock`. Mutates; O(depth)."""

    @abstractmethod
    def unlock(self, node: Node) -> None:
        """Undo one `lock` of `node`. Mutates; O(depth)."""

    @abstractmethod
    def evict(self, tokens: int) -> int:
        """Give whole leaves back to the pool, least worth first, until `tokens` are free or none is left.

        Returns the tokens given back. Mutates; O(leaves), and O(log leaves) for each that goes.
        """

    def reset(self) -> bool:
        """Forget everything, on the device and beyond; False while anything is locked. Mutates."""
        return not self.protected_tokens

    def nodes(self) -> Iterator[Node]:
        """Every node but the root, parents first. Pure."""
        return iter(())

    def tell_admitted(self, sequence: int, content: Content, tokens: int, node: Node) -> None:
        """Tell whoever listens that a sequence, by its id, is admitted behind what ends at `node`. Pure; O(depth).

        The first `tokens` tokens of its `content` are known.
        """
        if self.listener is not None:
            # What was evicted would come back as other edges, so that nobody knows what would have been found.
            found = [(edge, edge.tokens) for edge in reversed(node.path())]
            self.listener.admitted(sequence, content, tokens, found, ())

    def make_room(self, slots: int) -> int:
        """Evict as much as the pool lacks for `slots`; returns the tokens evicted. Mutates."""
        short = slots - self.pool.free
        return self.evict(short) if short > 0 else 0


class NoTree(PrefixTree):
    """Prefix caching off: nothing is found, kept or evicted."""

    shares = False

    def __init__(self, pool: SlotPool) -> None:
        self.pool = pool
        self.root = Node(Content(), priority=0, now=0)
        self.evictable_tokens = self.protected_tokens = 0

    def match(self, key: Content, limit: int | None = None) -> Match:
        return Match(0, self.root, 0, self.root)

    def find(self, key: Content, limit: int | None = None) -> list[tuple[Node, int]]:
        return []

    def insert(
        self, key: Content, *, limit: int | None = None, owned: int = 0, counted: int = 0, priority: int = 0
    ) -> Insertion:
        raise NotImplementedError("a cache that keeps nothing takes nothing over: ask `shares` first")

    def lock(self, node: Node) -> None:
        pass

    def unlock(self, node: Node) -> None:
        pass

    def evict(self, tokens: int) -> int:
        return 0
