"""What SGLang's rows hold, in the terms of kvsim's engine: the allocator that its scheduler drives itself."""

from collections.abc import Iterable
from collections.abc import Sequence as Seq

from kvsim.errors import CheckError
from kvsim.memory.phases import PhaseLeap, phases_of
from kvsim.memory.radix.interface import PrefixTree
from kvsim.memory.radix.row import audit_rows
from kvsim.memory.radix.tree import RadixTree
from kvsim.memory.residency import CacheListener
from kvsim.memory.written import WrittenBooks
from kvsim.request import Sequence
from kvsim.scheduling.sglang.request import Request
from kvsim.scheduling.sglang.rows import Rows
from kvsim.step import Ask, Chunk, Grant, PoolUse, Short


class RowBooks(WrittenBooks):
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
        self._held: dict[int, Request] = {}
        """Who has a row, by the id of its sequence."""
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
        owners = [sequence for sequence in live if sequence.id in self._held]
        if len(owners) != len(self._held):
            raise CheckError(
                f"{self.name}: {len(self._held) - len(owners)} requests have a row and are not live (a leak)"
            )
        audit_rows(self.tree, list(self._held.values()), self._rows_slots)
        written = sum(self.decodes.written_of(sequence) for sequence in owners)
        counted = self._prefill_written + self.decodes.written
        if written != counted:
            raise CheckError(f"{self.name}: live requests have written {written} tokens, {counted} are counted")

    def listen(self, listener: CacheListener) -> None:
        """A piece is an edge of the tree."""
        if isinstance(self.tree, RadixTree):
            self.tree.listener = listener

    # What changes it.

    def takes(self, sequence: Sequence, request: Request, hit_tokens: int) -> None:
        """A sequence has a row now, whose first tokens were found cached. Mutates."""
        if request.locked is not None:
            self.tree.tell_admitted(sequence.id, request.content, request.tokens, request.locked)
        self._held[sequence.id] = request
        sequence.written = hit_tokens
        self._prefill_written += hit_tokens

    def lets_go(self, sequence: Sequence) -> None:
        """A sequence has no row any more, and what it had written counts no more. Mutates."""
        del self._held[sequence.id]
        self._forget(sequence)

    def count(self) -> None:
        """Bring the counts of upkeep up to date. Mutates."""
        self.upkeep.evictions = self.rows.evicted // self.page_size

    def acquire(self, asks: Seq[Ask], *, decodes: bool = False) -> Grant | Short:
        if asks:
            raise NotImplementedError("the scheduler takes the slots of its rows itself")
        self.rows.grow([self._held[number] for number in self._held], 1)
        return Grant()

    def settle(self, chunks: Iterable[Chunk], *, stalled: bool = False) -> bool:
        if not stalled:
            self.decodes.advance()
        self._write(chunks)
        return False

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


class RowLeap(PhaseLeap):
    """Decode steps in free slots: up to the first for which something may have to be evicted."""

    __slots__ = ("_books", "_use")

    def __init__(self, books: RowBooks, limit: int) -> None:
        phases, clock = books.phases, books.decodes.clock + books.ahead
        self._books, self._use = books, books.usage()
        # With pages, one is asked for each row in every step, whoever needs it.
        spare = books.pool.free // books.page_size - phases.count
        steps = min(limit, phases.served(clock, limit, spare) + 1) if spare >= 0 else 0
        super().__init__(phases, clock, steps, others=books.ahead * phases.count)

    def use_at(self, step: int) -> PoolUse:
        """What is cached stays."""
        use, written = self._use, self._phases.count * step
        taken = self._phases.blocks(self._clock, step + 1) * self._phases.size
        free, unwritten = use.free - taken, use.unwritten + taken - written
        return use._replace(used=use.used + written, unwritten=unwritten, free=free, largest_hole=free)

    def apply(self, steps: int) -> None:
        """Only what is written; the scheduler's `leapt` has the rows grow."""
        self._books.decodes.advance(steps)
