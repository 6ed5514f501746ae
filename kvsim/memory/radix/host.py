"""A host tier behind the tree: what is written to host memory, what stays there alone, what is loaded back.

SGLang's HiCache, decisions only (0.5.23): copies are taken to be done at once, their time is somebody else's business.
A node is on the device, in host memory, or both; below one that is in host memory alone nothing is on the device.
"""

from kvsim.memory.radix.interface import Match
from kvsim.memory.radix.node import Node
from kvsim.memory.radix.pool import SlotPool
from kvsim.memory.radix.tree import RadixTree

WRITE_POLICIES = {"write_through": 1, "write_through_selective": 2, "write_back": None}
"""Name to the hits at which a node is written to host memory; None: when it is evicted (SGLang 0.5.23, HiCache)."""


class TieredRadixTree(RadixTree):
    """A radix tree whose nodes may live on in host memory."""

    def __init__(
        self, pool: SlotPool, host: SlotPool, *, write_policy: str, load_back_tokens: int, eviction: str = "lru"
    ) -> None:
        super().__init__(pool, eviction=eviction)
        if write_policy not in WRITE_POLICIES:
            raise ValueError(f"no write policy {write_policy!r}; there are {', '.join(WRITE_POLICIES)}")
        self.host = host
        self.write_hits = WRITE_POLICIES[write_policy]
        self.load_back_tokens = load_back_tokens
        """Fewer tokens than this are computed again rather than loaded."""
        self.written_tokens = self.loaded_tokens = 0
        self.host_leaves = self._queue()
        """Nodes that may leave the host: there alone, not locked, nothing below them."""
        self._twins: dict[Node, None] = {}
        """With `write_back`: nodes seen both on the device and in host memory, in the order in which they became so.

        The host copies of those that still are go first when the host is short.
        """

    def reset(self) -> bool:
        if not super().reset():
            return False
        self.host.give(self.host.slots - self.host.free)
        self.host_leaves = self._queue()
        self._twins.clear()
        return True

    def load_back(self, found: Match) -> int:
        """Bring what a match found in host memory back to the device, all of it or nothing; tokens loaded. Mutates."""
        if found.host_tokens < max(1, self.load_back_tokens):
            return 0
        self.lock(found.host_node)
        self.make_room(found.host_tokens)
        self.unlock(found.host_node)
        if self.pool.free < found.host_tokens:
            return 0
        self.pool.take(found.host_tokens)
        arrived = [node for node in found.host_node.path() if not node.on_device]
        for node in arrived:
            self._arrive(node)
        for node in reversed(arrived):
            self._tell_stored(node)
        self.loaded_tokens += found.host_tokens
        return found.host_tokens

    def _count_hit(self, node: Node) -> None:
        if self.write_hits is None:
            return
        super()._count_hit(node)
        if node.on_host or node.hits < self.write_hits:
            return
        for above in reversed(node.path()):
            if not (above.on_host or self._write(above)):
                break

    def _evict_leaf(self, leaf: Node) -> int:
        """A leaf in host memory stays there alone; another is written there first, or lost with all below it."""
        if not leaf.on_host:
            if self.write_hits is None:
                if not self._write(leaf):
                    return self._lose(leaf)
                self._note_twin(leaf)
            else:
                return super()._evict_leaf(leaf)
        self._leave(leaf)
        return leaf.tokens

    def _lose(self, leaf: Node) -> int:
        """Host memory has no room: drop a leaf and all below it there; nobody holds that without it."""
        below = [leaf]
        for node in below:
            below += node.children.values()
        for node in reversed(below[1:]):
            self._drop_from_host(node)
            self._remove(node)
        return super()._evict_leaf(leaf)

    def _write(self, node: Node) -> bool:
        """Copy one node to host memory, making room there; False where that cannot be."""
        short = node.tokens - self.host.free
        if short > 0 and self._make_host_room(short) < short:
            return False
        self.host.take(node.tokens)
        node.on_host = True
        self.written_tokens += node.tokens
        return True

    def _make_host_room(self, tokens: int) -> int:
        """Give back host slots: with `write_back` copies of what is on the device first, then leaves."""
        freed = self._drop_twins(tokens)
        while freed < tokens and (leaf := self.host_leaves.pop_least()) is not None:
            self._drop_from_host(leaf)
            self._remove(leaf)
            freed += leaf.tokens
        return freed

    def _drop_twins(self, tokens: int) -> int:
        """Drop host copies of nodes that are on the device too; those about to leave the device only if need be."""
        freed = 0
        for spare_leaves in (True, False):
            for node in list(self._twins):
                if freed >= tokens:
                    return freed
                if not (node.on_device and node.on_host):
                    del self._twins[node]
                elif not (spare_leaves and node in self.leaves):
                    self._drop_from_host(node)
                    del self._twins[node]
                    freed += node.tokens
        return freed

    def _note_twin(self, node: Node) -> None:
        if self.write_hits is None and node.on_device and node.on_host:
            self._twins.setdefault(node)

    def _drop_from_host(self, node: Node) -> None:
        node.on_host = False
        self.host.give(node.tokens)
        self._refresh(node)

    def _touch(self, node: Node) -> None:
        super()._touch(node)
        self.host_leaves.touched(node)

    def _arrive(self, node: Node) -> None:
        super()._arrive(node)
        self._note_twin(node)

    def _split(self, child: Node, tokens: int) -> Node:
        upper = super()._split(child, tokens)
        self._note_twin(upper)
        return upper

    def _remove(self, leaf: Node) -> None:
        super()._remove(leaf)
        self._twins.pop(leaf, None)
        self._refresh(leaf.parent)

    def _refresh(self, node: Node) -> None:
        super()._refresh(node)
        if node.on_host and not (node.on_device or node.locks or node.children):
            self.host_leaves.add(node)
        else:
            self.host_leaves.discard(node)
