"""Where everything lies: the slots of each row, those of each edge of the tree, and the free ones."""

from array import array
from collections.abc import Iterable
from typing import TYPE_CHECKING

from kvsim.errors import CheckError
from kvsim.memory.radix.slots.free import FreeSlots, Slots

if TYPE_CHECKING:
    from kvsim.memory.radix.node import Node
    from kvsim.memory.radix.row import Holder


class SlotBook:
    """The numbers behind the counts of one pool, told of everything that moves, in the order in which it does.

    A row begins with the slots of the edges that it protects, as SGLang repoints it at each checkpoint; `rows` holds
    those behind them, which are its own. What happens to a tree on the device alone is known here; a host tier is not.
    """

    def __init__(self, slots: int, page_size: int) -> None:
        self._slots = slots
        self.free = FreeSlots(slots, page_size)
        self.rows: dict[Holder, Slots] = {}
        self.edges: dict[Node, Slots] = {}
        self.freed: Slots = array("q")
        """Those that have come free since the last `settle`; some may be taken again."""
        self.stored: dict[Node, None] = {}
        """Edges whose slots have become the tree's since then."""
        self.cuts: list[tuple[Node, Node]] = []
        """Edges cut since then, each with the new one above it, in order."""

    def settle(self) -> None:
        """Somebody has looked at what has changed. Mutates."""
        self.freed = array("q")
        self.stored.clear()
        self.cuts.clear()

    # Rows.

    def own(self, row: "Holder") -> Slots:
        """The slots of a row behind those of the tree. Pure."""
        return self.rows.get(row) or array("q")

    def take(self, row: "Holder", slots: int) -> None:
        """A row gets so many slots more. Mutates."""
        self.rows.setdefault(row, array("q")).extend(self.free.take(slots))

    def hand_over(self, row: "Holder", found: int, edge: "Node", new: int) -> None:
        """The first slots of its own leave a row: `found` come free, as the tree has their content; `new` are `edge`'s.

        Mutates.
        """
        if not (found or new):
            return
        own = self.rows[row]
        self._frees(own[:found])
        if new:
            self.edges[edge] = own[found : found + new]
            self.stored[edge] = None
        del own[: found + new]

    def give_back(self, row: "Holder") -> None:
        """A row is no more: its own slots come free. Mutates."""
        own = self.rows.pop(row, None)
        if own:
            self._frees(own)

    # The tree.

    def cut(self, edge: "Node", upper: "Node", tokens: int) -> None:
        """The first `tokens` tokens of `edge` are `upper` now; all stays where it is. Mutates."""
        slots = self.edges[edge]
        self.edges[upper], self.edges[edge] = slots[:tokens], slots[tokens:]
        self.cuts.append((edge, upper))
        if edge in self.stored:
            self.stored[upper] = None

    def evict(self, edge: "Node") -> None:
        """The slots of `edge` come free. Mutates."""
        self._frees(self.edges.pop(edge))

    def empty(self) -> None:
        """The tree has forgotten everything. Mutates."""
        for slots in self.edges.values():
            self._frees(slots)
        self.edges.clear()

    def audit(self, edges: "Iterable[Node]", free: int) -> None:
        """CheckError where these are not the edges of the tree, or the slots do not add up. Pure; O(rows and edges)."""
        found = {edge: edge.tokens for edge in edges}
        if found != {edge: len(slots) for edge, slots in self.edges.items()}:
            raise CheckError("radix: the edges whose slots are known are not those of the tree")
        own = sum(len(slots) for slots in self.rows.values())
        if len(self.free) != free or own + sum(found.values()) + free != self._slots:
            raise CheckError(
                f"radix: {own} slots of rows, {sum(found.values())} of the tree and {len(self.free)} free ones are "
                f"known of a pool of {self._slots} with {free} free ones (a leak, or a double free)"
            )

    def _frees(self, slots: Slots) -> None:
        self.freed.extend(slots)
        self.free.give(slots)
