"""The leaves that may be evicted, least worth first, without sorting them anew each time."""

from collections.abc import Callable
from heapq import heapify, heappop, heappush, heapreplace
from itertools import count

from kvsim.memory.radix.eviction import Worth
from kvsim.memory.radix.node import Node


class LeafQueue:
    """A set of leaves whose worth changes, and a heap of what it was when last looked at.

    Where a touch only ever raises worth, an entry that is out of date is put right when it comes to the top; where a
    touch lowers it, every touch makes a new entry.
    """

    def __init__(self, worth: Callable[[Node], Worth], *, touch_lowers: bool) -> None:
        self._worth = worth
        self._touch_lowers = touch_lowers
        self._members: dict[Node, int] = {}
        """Each with the number of its entry in the heap, the only one that counts."""
        self._heap: list[tuple[Worth, int, Node]] = []
        self._numbers = count()

    @property
    def members(self) -> set[Node]:
        """All of them. Pure."""
        return set(self._members)

    def __contains__(self, node: Node) -> bool:
        return node in self._members

    def add(self, node: Node) -> None:
        """A leaf that may be evicted now. Mutates; O(log leaves)."""
        if node not in self._members:
            self._enter(node)

    def discard(self, node: Node) -> None:
        """It may not be evicted any more, or is gone. Mutates; O(1)."""
        self._members.pop(node, None)

    def touched(self, node: Node) -> None:
        """A node, perhaps a member, was touched. Mutates; O(log leaves) where that lowers worth."""
        if self._touch_lowers and node in self._members:
            self._enter(node)

    def pop_least(self) -> Node | None:
        """The member of least worth; it does not come again, so the caller has to discard it. Mutates."""
        while self._heap:
            worth, number, leaf = self._heap[0]
            if self._members.get(leaf) != number:
                heappop(self._heap)
            elif (now := self._worth(leaf)) > worth:
                heapreplace(self._heap, (now, number, leaf))
            else:
                heappop(self._heap)
                return leaf
        return None

    def _enter(self, node: Node) -> None:
        number = self._members[node] = next(self._numbers)
        heappush(self._heap, (self._worth(node), number, node))
        if len(self._heap) > 2 * len(self._members) + 64:  # mostly entries that do not count any more
            self._heap = [entry for entry in self._heap if self._members.get(entry[2]) == entry[1]]
            heapify(self._heap)
