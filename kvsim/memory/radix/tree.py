"""The radix tree on the device: match, split, insert, lock, evict.

Time is a counter that ticks with every touch, so that the order of eviction is the same on every run.
"""

from collections.abc import Iterator
from itertools import count

from kvsim.content import Content, common_tokens
from kvsim.errors import CheckError
from kvsim.memory.radix.eviction import POLICIES, TOUCH_LOWERS
from kvsim.memory.radix.interface import Insertion, Match, PrefixTree
from kvsim.memory.radix.leaves import LeafQueue
from kvsim.memory.radix.node import Node, Page
from kvsim.memory.radix.pool import SlotPool


class RadixTree(PrefixTree):
    """SGLang's tree: edges of whole pages, no two children of a node beginning with the same page."""

    shares = True

    def __init__(self, pool: SlotPool, *, eviction: str = "lru") -> None:
        if eviction not in POLICIES:
            raise ValueError(f"no eviction policy {eviction!r}; there are {', '.join(POLICIES)}")
        self.pool = pool
        self.eviction = eviction
        self._clock = count(1)
        self.root = Node(Content(), priority=0, now=0)
        self.evictable_tokens = self.protected_tokens = 0
        self.leaves = self._queue()
        """Nodes that may be evicted now: on the device, not locked, nothing below them on the device."""

    def match(self, key: Content, limit: int | None = None) -> Match:
        end = self.pool.floor(key.tokens if limit is None else min(key.tokens, limit))
        node, at, device, device_tokens = self.root, 0, self.root, 0
        path = []
        while at < end and (child := node.children.get(self._page(key, at))) is not None:
            shared = self._shared(child, key, at, end)
            node = self._split(child, shared) if shared < child.tokens else child
            path.append(node)
            at += shared
            if node.on_device:
                device, device_tokens = node, at
        for touched in path:
            self._touch(touched)
        return Match(device_tokens, device, at - device_tokens, node)

    def find(self, key: Content, limit: int | None = None) -> list[tuple[Node, int]]:
        end = self.pool.floor(key.tokens if limit is None else min(key.tokens, limit))
        node, at, found = self.root, 0, list[tuple[Node, int]]()
        while at < end and (child := node.children.get(self._page(key, at))) is not None and child.on_device:
            shared = self._shared(child, key, at, end)
            found.append((child, shared))
            if shared < child.tokens:
                break
            node, at = child, at + shared
        return found

    def insert(
        self, key: Content, *, limit: int | None = None, owned: int = 0, counted: int = 0, priority: int = 0
    ) -> Insertion:
        end = self.pool.floor(key.tokens if limit is None else min(key.tokens, limit))
        node, at = self.root, 0
        while at < end and (child := node.children.get(self._page(key, at))) is not None:
            self._touch(child)
            shared = self._shared(child, key, at, end)
            node = self._split(child, shared) if shared < child.tokens else child
            node.priority = max(node.priority, priority)
            if node.on_device:
                self.pool.give(max(0, shared - max(0, owned - at)))
            else:
                self._arrive(node)
                self._tell_stored(node)
            at += shared
            if at > counted:
                self._count_hit(node)
        found = at
        if found < end:
            node = self._add_leaf(node, key, found, end, priority)
            if end > counted:
                self._count_hit(node)
        return Insertion(found, node)

    def lock(self, node: Node) -> None:
        for held in node.path():
            if held.locks == 0 and held.on_device:
                self.evictable_tokens -= held.tokens
                self.protected_tokens += held.tokens
            held.locks += 1
            self._refresh(held)

    def unlock(self, node: Node) -> None:
        for held in node.path():
            if held.locks == 0:
                raise CheckError("a node of the radix tree is unlocked more often than it was locked")
            held.locks -= 1
            if held.locks == 0 and held.on_device:
                self.evictable_tokens += held.tokens
                self.protected_tokens -= held.tokens
            self._refresh(held)

    def evict(self, tokens: int) -> int:
        freed = 0
        while freed < tokens and (leaf := self.leaves.pop_least()) is not None:
            freed += self._evict_leaf(leaf)
        return freed

    def reset(self) -> bool:
        if self.protected_tokens:
            return False
        self.pool.give(self.evictable_tokens)
        if self.pool.book is not None:
            self.pool.book.empty()
        self.evictable_tokens = 0
        self.root = Node(Content(), priority=0, now=next(self._clock))
        self.leaves = self._queue()
        if self.listener is not None:
            self.listener.cleared()
        return True

    def nodes(self) -> Iterator[Node]:
        """Every node but the root, parents first. Pure."""
        waiting = list(self.root.children.values())
        while waiting:
            node = waiting.pop()
            yield node
            waiting += node.children.values()

    def _queue(self) -> LeafQueue:
        return LeafQueue(POLICIES[self.eviction], touch_lowers=self.eviction in TOUCH_LOWERS)

    def _evict_leaf(self, leaf: Node) -> int:
        """Take one leaf off the device; the tokens given back."""
        self._leave(leaf)
        self._remove(leaf)
        return leaf.tokens

    def _touch(self, node: Node) -> None:
        node.stamp = next(self._clock)
        self.leaves.touched(node)

    def _page(self, key: Content, at: int) -> Page:
        return key.part(at, at + self.pool.page_size)

    def _shared(self, child: Node, key: Content, at: int, end: int) -> int:
        """Tokens, in whole pages, that `key` from `at` on shares with an edge."""
        return self.pool.floor(common_tokens(child.content.runs, key.part(at, min(end, at + child.tokens))))

    def _split(self, child: Node, tokens: int) -> Node:
        """Cut an edge after `tokens`; the new upper part inherits what is known of it, and both count as touched."""
        upper = Node(Content(child.content.part(0, tokens)), priority=child.priority, now=next(self._clock))
        upper.created, upper.hits, upper.locks = child.created, child.hits, child.locks
        upper.on_device, upper.on_host, upper.resident = child.on_device, child.on_host, int(child.on_device)
        upper.parent = child.parent
        upper.parent.children[self._page(upper.content, 0)] = upper
        child.content = Content(child.content.part(tokens, child.tokens))
        child.parent = upper
        upper.children[self._page(child.content, 0)] = child
        self._touch(child)
        if self.listener is not None and child.on_device:
            self.listener.cut(child, upper, tokens)
        if self.pool.book is not None:
            self.pool.book.cut(child, upper, tokens)
        return upper

    def _add_leaf(self, parent: Node, key: Content, start: int, end: int, priority: int) -> Node:
        leaf = Node(Content(key.part(start, end)), priority=priority, now=next(self._clock))
        leaf.on_device = False
        leaf.parent = parent
        parent.children[self._page(key, start)] = leaf
        self._arrive(leaf)
        self._tell_stored(leaf)
        return leaf

    def _arrive(self, node: Node) -> None:
        """Its content is on the device now, in slots that somebody had taken from the pool."""
        node.on_device = True
        if node.locks:
            self.protected_tokens += node.tokens
        else:
            self.evictable_tokens += node.tokens
        node.parent.resident += 1
        self._refresh(node)
        self._refresh(node.parent)

    def _tell_stored(self, node: Node) -> None:
        """It is on the device, and all above it was told before."""
        if self.listener is not None:
            before = None if node.parent is self.root else node.parent
            self.listener.stored([node], before, node.content, 0, node.tokens)

    def _leave(self, leaf: Node) -> None:
        """Its content is no longer on the device."""
        leaf.on_device = False
        self.pool.give(leaf.tokens)
        if self.pool.book is not None:
            self.pool.book.evict(leaf)
        self.evictable_tokens -= leaf.tokens
        leaf.parent.resident -= 1
        if self.listener is not None:
            self.listener.removed([leaf], leaf.tokens, for_good=not leaf.on_host)
        self._refresh(leaf)
        self._refresh(leaf.parent)

    def _remove(self, leaf: Node) -> None:
        """Forget a node that is nowhere any more."""
        del leaf.parent.children[self._page(leaf.content, 0)]

    def _count_hit(self, node: Node) -> None:
        node.hits += 1

    def _refresh(self, node: Node) -> None:
        """Decide anew whether a node may be evicted."""
        if node.on_device and not node.locks and not node.resident and node is not self.root:
            self.leaves.add(node)
        else:
            self.leaves.discard(node)
