"""What SGLang's rows hold, in the terms of kvsim's engine: the allocator that its scheduler drives itself."""

from collections.abc import Iterable
from collections.abc import Sequence as Seq

from kvsim.content import Content
from kvsim.memory.books.held import HeldBooks
from kvsim.memory.phases import phases_of
from kvsim.memory.radix.interface import PrefixTree
from kvsim.memory.radix.leap import RowsLeap, unevicted
from kvsim.memory.radix.row import Row, audit_rows, leave_behind
from kvsim.memory.residency import CacheListener
from kvsim.request import Sequence
from kvsim.scheduling.sglang.request import Request
from kvsim.scheduling.sglang.rows import Rows
from kvsim.step import Ask, Grant, PoolUse, Short


class RowBooks(HeldBooks[Request]):
    """Counts what the rows of `rows` hold and what of it is written, `ahead` steps after it was taken.

    Slots are taken and given back by the scheduler; `acquire` only serves the step that a horizon cuts short.
    """

    name = "radix"

    def __init__(self, rows: Rows, *, ahead: int = 0) -> None:
        super().__init__()
        self.rows = rows
        self.tree: PrefixTree = rows.tree
        self.pool = rows.pool
        self.caches = self.tree.shares
        self.pool_slots = self.pool.slots
        self.page_size = self.pool.page_size
        self.ahead = ahead
        self.phases = phases_of(self.page_size)

    # What is there.

    def capacity(self, tokens: int) -> int:
        """Whole pages."""
        return self.pool.ceil(tokens)

    def last_growth(self, tokens: int) -> int:
        """At the start of its last page."""
        return (tokens - 1) // self.page_size * self.page_size

    def owned(self, sequence: Sequence) -> int:
        """Its row."""
        request = self._held.get(sequence.id)
        return self.pool.ceil(request.committed) if request else 0

    def row(self, sequence: Sequence) -> Request | None:
        """Its request, which is a row, if it has one. Pure."""
        return self._held.get(sequence.id)

    @property
    def _rows_slots(self) -> int:
        """The rows together, slots that are shared once for each."""
        ceil = self.pool.ceil
        return sum(ceil(request.committed) for request in self._held.values())

    @property
    def shared_slots(self) -> int:
        return self._rows_slots - (self.pool_slots - self.pool.free - self.tree.evictable_tokens)

    def usage(self) -> PoolUse:
        unwritten = self._rows_slots - self._prefill_written - self.decodes.written
        free, cached = self.pool.free, self.tree.evictable_tokens
        return PoolUse(self.pool_slots - free - cached - unwritten, unwritten, 0, 0, cached, free, free)

    def audit(self, live: Iterable[Sequence]) -> None:
        """The rows of the live ones against the pool and the tree, and what they have written against the counts."""
        self._owners(live, "have a row")
        audit_rows(self.tree, list(self._held.values()), self._rows_slots)

    def listen(self, listener: CacheListener) -> None:
        """A piece is an edge of the tree."""
        self.tree.listener = listener

    # What changes it.

    def takes(self, sequence: Sequence, held: Request, hit_tokens: int) -> None:
        """A sequence has a row now, whose first tokens were found cached. Mutates."""
        if held.locked is not None:
            self.tree.tell_admitted(sequence.id, held.content, held.tokens, held.locked)
        super().takes(sequence, held, hit_tokens)

    def warm(self, content: Content, prompt_tokens: int, tokens: int) -> None:
        """What the tree takes over from one that finishes."""
        leave_behind(self.tree, Row(content, prompt_tokens, 0), tokens)

    def flush(self) -> bool:
        """The tree is emptied."""
        return not self._held and self.tree.reset()

    def count(self) -> None:
        self.upkeep.evictions = self.rows.evicted // self.page_size

    def acquire(self, asks: Seq[Ask], *, decodes: bool = False) -> Grant | Short:
        if asks:
            raise NotImplementedError("the scheduler takes the slots of its rows itself")
        self.rows.grow([self._held[number] for number in self._held], 1)
        return Grant()

    def begin_decode(self, sequence: Sequence) -> None:
        self._prefill_written -= sequence.written
        self.decodes.join(sequence)
        self.phases.add(-sequence.origin % self.page_size)

    def _leave(self, sequence: Sequence) -> None:
        self.phases.remove(-sequence.origin % self.page_size)
        super()._leave(sequence)

    def release(self, sequence: Sequence) -> None:
        raise NotImplementedError("the scheduler gives back the slots of its rows itself")

    def leap(self, limit: int) -> "RowLeap":
        return RowLeap(self, limit)


class RowLeap(RowsLeap):
    """Decode steps in free slots: up to the first for which something may have to be evicted."""

    __slots__ = ("_books",)

    def __init__(self, books: RowBooks, limit: int) -> None:
        self._books = books
        phases, clock, use = books.phases, books.decodes.clock + books.ahead, books.usage()
        steps = unevicted(phases, clock, limit, use.free // books.page_size)
        super().__init__(phases, clock, steps, use, others=books.ahead * phases.count)

    def apply(self, steps: int) -> None:
        """Only what is written; the scheduler's `leapt` has the rows grow."""
        self._books.decodes.advance(steps)
