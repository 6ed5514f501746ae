"""`radix`: a tree of prefixes that were computed once, token by token or page by page, by SGLang's memory rules.

A sequence is admitted behind what the tree has of it, which it locks, and gets slots for the rest alone. When a chunk
of its prompt has been computed, the whole pages so far become the tree's, and what the tree has twice is freed; when
it ends, its output does too. What nobody locks stays until slots are short, and goes leaf by leaf (rules 2, 4 to 6 and
8 to 10, and of 17 what happens to the memory). Who is admitted, and who gives way, is the scheduler's affair.

Decoding sequences take slots by count, as in `paged`: a step touches none of them, nor the tree.
"""

from collections.abc import Iterable
from collections.abc import Sequence as Seq
from typing import NamedTuple

from kvsim.content import Content
from kvsim.errors import CheckError
from kvsim.memory.books.written import WrittenBooks
from kvsim.memory.phases import phases_of
from kvsim.memory.radix.interface import NoTree, PrefixTree
from kvsim.memory.radix.leap import RowsLeap, unevicted
from kvsim.memory.radix.node import Node
from kvsim.memory.radix.pool import SlotPool
from kvsim.memory.radix.row import Row, audit_rows, checkpoint, leave_behind, unlock
from kvsim.memory.radix.tree import RadixTree
from kvsim.memory.residency import CacheListener
from kvsim.request import Sequence
from kvsim.step import Ask, Chunk, Grant, PoolUse, Short

ROW_ENTRY_BYTES = 4
"""A row holds a 32-bit slot number a token, as SGLang's do (`ReqToTokenPool`, torch.int32)."""


class _Asked(NamedTuple):
    ask: Ask
    found: list[tuple[Node, int]]
    """What the tree has of it, edge by edge."""
    slots: int
    """Those that it takes from the pool."""
    least: int
    """Those that must be there."""
    wanted: int
    """Those for which room is made: SGLang asks for a page more than may be needed where pages are larger than one."""


class RadixAllocator(WrittenBooks):
    """Rows of slots, and the tree that keeps their contents.

    `page_size` is in slots. `eviction` says which leaf goes first. A sequence without `content` shares with nobody but
    itself, after a preemption. With `caching` off nothing is kept.
    """

    name = "radix"

    def __init__(self, pool_slots: int, *, page_size: int = 1, eviction: str = "lru", caching: bool = True) -> None:
        if page_size < 1:
            raise ValueError(f"page_size is {page_size}; it must be at least one slot")
        if pool_slots < page_size:
            raise ValueError(f"pool_slots is {pool_slots}; the pool must hold at least one page of {page_size}")
        super().__init__()
        self.page_size = page_size
        self.pool_slots = pool_slots // page_size * page_size
        self.caches = caching
        self.pool = SlotPool(self.pool_slots, page_size=page_size)
        self.tree: PrefixTree = RadixTree(self.pool, eviction=eviction) if caching else NoTree(self.pool)
        self.phases = phases_of(page_size)
        """Decoding sequences by the clock, modulo the page size, at which each needs a new page."""
        self._rows: dict[int, Row] = {}
        self._row_slots = 0
        """Slots in all rows, those of the tree counted in each."""
        self._ahead: set[int] = set()
        """Decoding sequences that got this step's slot one by one."""
        self._together = False
        """All of them got it at once."""

    # What is there.

    def capacity(self, tokens: int) -> int:
        """Whole pages."""
        return self.pool.ceil(tokens)

    def last_growth(self, tokens: int) -> int:
        """At the start of its last page."""
        return self.pool.floor(tokens - 1)

    def owned(self, sequence: Sequence) -> int:
        """Its row."""
        row = self._rows.get(sequence.id)
        return self.pool.ceil(self._tokens(sequence, row)) if row else 0

    def row(self, sequence: Sequence) -> Row | None:
        """Its row, if it has one. Pure."""
        return self._rows.get(sequence.id)

    def _tokens(self, sequence: Sequence, row: Row) -> int:
        """Tokens that it has slots for."""
        if not sequence.decoding:
            return row.tokens
        return sequence.origin + self.decodes.clock + (self._together or sequence.id in self._ahead)

    @property
    def held_slots(self) -> int:
        """Slots in some row, each counted once."""
        return self.pool_slots - self.pool.free - self.tree.evictable_tokens

    @property
    def shared_slots(self) -> int:
        """Every row that holds a slot but the first saves it."""
        return self._row_slots - self.held_slots

    @property
    def retired_unwritten(self) -> int:
        """Slots of sequences that have ended and not yet left, which nobody has written."""
        return sum(self.pool.ceil(self._rows[number].tokens) for number in self._retired) - self.dead

    def lookup(self, sequence: Sequence) -> int:
        """Tokens at its start that the tree has: all but its last known one at most, in whole pages."""
        return sum(tokens for _, tokens in self._find(sequence))

    def _find(self, sequence: Sequence) -> list[tuple[Node, int]]:
        """One that comes back from host memory brings along what it had written, and looks for nothing."""
        return [] if sequence.written else self.tree.find(sequence.contents, sequence.tokens - 1)

    def usage(self) -> PoolUse:
        """Written slots count once, however many rows hold them; what the tree has and nobody locks is cached."""
        held, free, cached = self.held_slots, self.pool.free, self.tree.evictable_tokens
        used = self._prefill_written + self.decodes.written - self.shared_slots
        return PoolUse(used, held - used - self.dead, self.dead, 0, cached, free, free)

    def audit(self, live: Iterable[Sequence]) -> None:
        """Rows and locks of the live ones against the tree and the pool, and what they have written."""
        owners = [sequence for sequence in live if sequence.id in self._rows]
        if len(owners) != len(self._rows):
            strays = len(self._rows) - len(owners)
            raise CheckError(f"{self.name}: {strays} requests own slots and are not live (a leak)")
        rows, in_rows = [self._rows[sequence.id] for sequence in owners], sum(map(self.owned, owners))
        if in_rows != self._row_slots:
            raise CheckError(f"{self.name}: live requests own {in_rows} slots, {self._row_slots} are counted")
        audit_rows(self.tree, rows, in_rows)
        self._check_written(owners)
        if self.phases.recount() != self.decodes.count:
            raise CheckError(f"{self.name}: the phases do not count {self.decodes.count} decoding sequences")

    def listen(self, listener: CacheListener) -> None:
        """A piece is an edge of the tree."""
        self.tree.listener = listener

    # What changes it.

    def acquire(self, asks: Seq[Ask], *, decodes: bool = False) -> Grant | Short:
        """An admitted sequence starts behind what the tree has of it: `written` is set to that."""
        pool, tree = self.pool, self.tree
        each = self.page_size if decodes else 0
        take, wanted = self.phases.crossing(self.decodes.clock) * each, self.decodes.count * each
        reach, need = pool.free + tree.evictable_tokens, take
        if need > reach:
            return Short("capacity", need, reach, reach)
        asked: list[_Asked] = []
        hit: dict[Node, int] = {}
        """Tokens of each edge that can be evicted now and will be locked."""
        for ask in asks:
            one = self._asked(ask)
            locks = 0
            for node, tokens in one.found:
                if not node.locks and tokens > hit.get(node, 0):
                    locks += tokens - hit.get(node, 0)
                    hit[node] = tokens
            if need + locks + one.least > reach:
                return Short("capacity", locks + one.least, reach, reach)
            need += locks + one.slots
            take += one.slots
            wanted += one.wanted
            asked.append(one)
        held = self.held_slots
        for one in asked:
            self._extend(one)
        self.upkeep.evictions += tree.make_room(wanted) // self.page_size
        self.upkeep.allocations += (self.held_slots - held) // self.page_size
        self.take(take)
        if decodes:
            self._together = True
        return Grant()

    def take(self, slots: int) -> None:
        """So many free slots go to rows. Mutates."""
        self.pool.take(slots)
        self._row_slots += slots
        self.upkeep.allocations += slots // self.page_size
        self.upkeep.table_bytes = max(self.upkeep.table_bytes, self._row_slots * ROW_ENTRY_BYTES)

    def warm(self, content: Content, prompt_tokens: int, tokens: int) -> None:
        """What the tree takes over from one that finishes."""
        leave_behind(self.tree, Row(content, prompt_tokens, 0), tokens)

    def flush(self) -> bool:
        """The tree is emptied."""
        return not self._rows and self.tree.reset()

    def _asked(self, ask: Ask) -> _Asked:
        sequence, size = ask.sequence, self.page_size
        found = self._find(sequence) if ask.admit else []
        row = self._rows.get(sequence.id)
        start = self._tokens(sequence, row) if row else sum(tokens for _, tokens in found)
        slots = max(0, self.capacity(ask.tokens) - self.capacity(start))
        gate = self.capacity(ask.gate) - start if ask.admit else 0
        wanted = size if sequence.decoding else max(0, ask.tokens - start) + (size if size > 1 else 0)
        return _Asked(ask, found, slots, max(slots, gate), wanted)

    def _extend(self, one: _Asked) -> None:
        """It has what it asked for, but for the slots themselves; of what it found, the tree has taken note."""
        ask, sequence = one.ask, one.ask.sequence
        if sequence.decoding:
            self._ahead.add(sequence.id)
            return
        row = self._rows.get(sequence.id)
        if row is None:
            # The tree keeps what is of high priority; in requests, as in vLLM's, the lower number goes first.
            row = Row(sequence.contents, sequence.prompt_tokens, -sequence.priority)
            self._rows[sequence.id] = row
            if ask.admit and not sequence.written:
                match = self.tree.match(row.content, sequence.tokens - 1)
                self.tree.lock(match.node)
                self.tree.tell_admitted(sequence.id, row.content, sequence.tokens, match.node)
                row.locked, row.protected = match.node, match.tokens
                sequence.written = match.tokens
                self._prefill_written += match.tokens
                self._row_slots += match.tokens
        row.tokens = max(row.tokens, ask.tokens)

    def settle(self, chunks: Iterable[Chunk], *, stalled: bool = False) -> bool:
        """What the chunks have computed becomes the tree's, in their order; duplicates come free."""
        if not stalled:
            self.decodes.advance()
            self._together = False
            self._ahead.clear()
        chunks = list(chunks)
        self._write(chunks)
        free, known, held = self.pool.free, self.tree.tokens, self.held_slots
        for chunk in chunks:
            checkpoint(self.tree, self._rows[chunk.sequence.id], chunk.sequence.written)
        self.upkeep.frees += (held - self.held_slots) // self.page_size
        return self.pool.free > free or self.tree.tokens > known

    def begin_decode(self, sequence: Sequence) -> None:
        """It joins its phase."""
        self._prefill_written -= sequence.written
        self.decodes.join(sequence)
        self.phases.add(-sequence.origin % self.page_size)
        if self._rows[sequence.id].tokens > sequence.written:
            self._ahead.add(sequence.id)

    def _leave(self, sequence: Sequence) -> None:
        self._rows[sequence.id].tokens = self.owned(sequence)
        self.phases.remove(-sequence.origin % self.page_size)
        super()._leave(sequence)
        self._ahead.discard(sequence.id)

    def release(self, sequence: Sequence) -> None:
        """What it has written stays cached, as far as its pages are full."""
        self._give_back(sequence, keep=True)

    def preempt(self, sequence: Sequence) -> None:
        """What of it has become the tree's stays cached; its output is gone."""
        self._give_back(sequence, keep=False)

    def _give_back(self, sequence: Sequence, *, keep: bool) -> None:
        row = self._rows.get(sequence.id)
        if row is None:
            raise CheckError(f"request {sequence.id} gives back slots it does not own (a double free)")
        self._forget(sequence)
        del self._rows[sequence.id]
        held, slots = self.held_slots, self.capacity(row.tokens)
        if keep:
            checkpoint(self.tree, row, sequence.written)
        self.pool.give(slots - row.protected)
        if self.pool.book is not None:
            self.pool.book.give_back(row)
        unlock(self.tree, row)
        self._row_slots -= slots
        self.upkeep.frees += (held - self.held_slots) // self.page_size

    def leap(self, limit: int) -> "RadixLeap":
        """Up to the step before which something must be evicted, or in which slots fall short."""
        return RadixLeap(self, limit)


class RadixLeap(RowsLeap):
    """Decode steps that the free slots serve."""

    __slots__ = ("_allocator",)

    def __init__(self, allocator: RadixAllocator, limit: int) -> None:
        self._allocator = allocator
        phases, clock, use = allocator.phases, allocator.decodes.clock, allocator.usage()
        pages = use.free // allocator.page_size
        steps = unevicted(phases, clock, limit, pages) if use.cached else phases.served(clock, limit, pages)
        super().__init__(phases, clock, steps, use, others=allocator.retired_unwritten)

    def apply(self, steps: int) -> None:
        """All the slots at once."""
        self._allocator.take(self._phases.blocks(self._clock, steps) * self._phases.size)
        self._allocator.decodes.advance(steps)
