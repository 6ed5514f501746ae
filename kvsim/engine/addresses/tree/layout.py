"""The layout of a radix cache: rows of slots that begin in the tree, and what the tree alone keeps."""

from collections.abc import Iterator, Sequence

from kvsim.engine.addresses.bands import CACHED, DEAD, FREE, RESERVED, USED, Bands, bands_of, differences
from kvsim.engine.addresses.layout import Layout, Paint
from kvsim.engine.addresses.tree.canvas import Canvas
from kvsim.engine.addresses.tree.holders import Holders
from kvsim.memory.radix.allocator import RadixAllocator
from kvsim.memory.radix.node import Node
from kvsim.memory.radix.row import Holder
from kvsim.memory.radix.slots import SlotBook
from kvsim.metrics.requests import Journey
from kvsim.scheduling.sglang.books import RowBooks

TreeRows = RadixAllocator | RowBooks
"""Allocators whose slots are those of rows and of a radix tree."""


class TreeLayout(Layout):
    """Rows by sequence, edges by who protects them, in the slots that a `SlotBook` of the pool says.

    An edge that several sequences protect counts to the first that came to do so, and to the next when that one leaves;
    what nobody protects is cached. An edge that is cut stays where it is, and so does one that comes to be cached. Rows
    of SGLang's scheduler take their slots when it does; those that decode under another take theirs, in admission
    order, when the step has been planned, after all that it admits and evicts.
    """

    def __init__(self, allocator: TreeRows) -> None:
        self._allocator = allocator
        self._book = SlotBook(allocator.pool.slots, allocator.page_size)
        allocator.pool.book = self._book
        self._canvas = Canvas(allocator.pool.slots)
        self._holders = Holders()
        self._noted: dict[int, Bands] = {}
        self._left: list[int] = []
        self._ahead: dict[Node, None] = {}
        """Edges noted as not written yet: those of a chunk in flight, which SGLang hands over before its result."""

    def forked(self, parent: int, child: int) -> None:
        """See `Layout`; here samples come one by one, and find their prompt in the tree."""

    def left(self, sequence: int, *, in_plan: bool) -> None:
        """See `Layout`."""
        if self._noted.pop(sequence, None) is not None:
            self._left.append(sequence)

    def changes(self, running: Sequence[Journey], *, stalled: bool) -> Iterator[Paint]:
        """See `Layout`."""
        book, canvas, holders = self._book, self._canvas, self._holders
        rows = [(journey, row) for journey in running if (row := self._allocator.row(journey.sequence)) is not None]
        holders.cut(book.cuts)
        self._ahead.update((upper, None) for edge, upper in book.cuts if edge in self._ahead)
        moved, self._ahead = self._ahead | book.stored, {}
        for sequence in self._left:
            moved.update(dict.fromkeys(holders.moves(sequence, None)))
        for journey, row in rows:
            moved.update(dict.fromkeys(holders.moves(journey.sequence.id, row.locked)))
        self._left.clear()
        canvas.put(book.freed, 0, FREE)
        for edge in moved:
            self._put_edge(edge)
        for journey, row in rows:
            self._put_row(journey, row)
        book.settle()
        return canvas.changes()

    def _put_edge(self, edge: Node) -> None:
        """An edge counts to somebody else, or is new; it may be gone by now."""
        slots, first = self._book.edges.get(edge), self._holders.first(edge)
        if slots is None:
            return
        if first is None:
            self._canvas.put(slots, 0, CACHED)
        else:
            self._canvas.put(slots, first, USED)

    def _put_row(self, journey: Journey, row: Holder) -> None:
        """What has changed of the slots of its own, and the part of the tree's that it has not written yet."""
        sequence, allocator, book = journey.sequence, self._allocator, self._book
        written, owned = allocator.decodes.written_of(sequence), allocator.owned(sequence)
        shared = row.protected
        if missing := owned - shared - len(book.own(row)):
            book.take(row, missing)
        own = book.own(row)
        bands = bands_of(written, owned, journey.furthest, holding=DEAD if journey.done else USED)
        for low, high, kind in differences(self._noted.get(sequence.id, ()), bands):
            if high > shared:
                self._canvas.put(own[max(low, shared) - shared : high - shared], sequence.id, kind)
        self._noted[sequence.id] = bands
        if written < shared:
            self._put_ahead(row, written)

    def _put_ahead(self, row: Holder, written: int) -> None:
        assert row.locked is not None
        end = row.protected
        for edge in row.locked.path():
            start, first = end - edge.tokens, self._holders.first(edge)
            if end <= written:
                return
            assert first is not None
            self._canvas.put(self._book.edges[edge][max(0, written - start) :], first, RESERVED)
            self._ahead[edge] = None
            end = start
