"""Who holds which edge of a radix tree, in the order in which they came to do so."""

from collections.abc import Iterable, Iterator

from kvsim.memory.radix.node import Node


class Holders:
    """The tree counts locks; here each has a name: the sequence whose row begins with the slots of an edge."""

    def __init__(self) -> None:
        self._ends: dict[int, Node] = {}
        """Where in the tree the row of each sequence goes over into slots of its own."""
        self._of: dict[Node, list[int]] = {}

    def first(self, edge: Node) -> int | None:
        """The sequence that has held `edge` for longest; None: nobody does. Pure."""
        return self._of[edge][0] if edge in self._of else None

    def cut(self, cuts: Iterable[tuple[Node, Node]]) -> None:
        """Whoever holds an edge holds the new one above it as well. Mutates."""
        for edge, upper in cuts:
            if edge in self._of:
                self._of[upper] = self._of[edge].copy()

    def moves(self, sequence: int, end: Node | None) -> Iterator[Node]:
        """The row of `sequence` shares what leads to `end` from now on (None: nothing). Mutates.

        Gives the edges that count to another sequence than before, or to nobody. O(depth), where anything moves.
        """
        before = self._ends.get(sequence)
        if before is end:
            return
        old = dict.fromkeys(before.path()) if before else {}
        new = dict.fromkeys(end.path()) if end else {}
        for edge in old:
            if edge not in new:
                yield from self._leaves(edge, sequence)
        for edge in new:
            if edge not in old:
                of = self._of.setdefault(edge, [])
                of.append(sequence)
                if len(of) == 1:
                    yield edge
        if end is None:
            del self._ends[sequence]
        else:
            self._ends[sequence] = end

    def _leaves(self, edge: Node, sequence: int) -> Iterator[Node]:
        of = self._of[edge]
        owned = of[0] == sequence
        of.remove(sequence)
        if not of:
            del self._of[edge]
        if owned:
            yield edge
