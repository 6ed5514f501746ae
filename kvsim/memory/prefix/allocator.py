"""`prefix`: paged blocks that keep their contents, so that a prefix computed once is not computed again.

The rules of vLLM's manager for one group of full attention behind the seam of all allocators. A step touches only the
decoding sequences whose block fills, or that need a new one: they are found by their phase, as in `paged`.
"""

from collections.abc import Iterable
from collections.abc import Sequence as Seq
from typing import NamedTuple

from kvsim.content import ENDLESS, Content
from kvsim.errors import CheckError
from kvsim.memory.books.held import HeldBooks
from kvsim.memory.paged import TABLE_ENTRY_BYTES
from kvsim.memory.phases import PhaseMembers, phases_of
from kvsim.memory.prefix.full import FullGroup
from kvsim.memory.prefix.holdings import Holding, Holdings, Want
from kvsim.memory.prefix.leap import PrefixLeap
from kvsim.memory.prefix.lookup import Hit
from kvsim.memory.prefix.pool import BlockPool
from kvsim.memory.residency import CacheListener
from kvsim.request import Sequence
from kvsim.step import Ask, Grant, PoolUse, Short


class _Asked(NamedTuple):
    sequence: Sequence
    holding: Holding
    want: Want
    """What it takes."""
    hit: Hit | None = None
    demands: Want | None = None
    """What must be there for it to be admitted, if that may be more."""


class PrefixAllocator(HeldBooks[Holding]):
    """Blocks, block tables, and the map from contents to blocks.

    `block_size` is in slots. `watermark` is the share of all blocks that an admission must leave free while anything is
    running (0: none). A sequence without `content` shares with nobody but itself, after a preemption. `unknown_first`
    says how freed blocks queue (see `BlockPool`); with `caching` off nothing is ever hit. Where batches are in flight
    while the next is planned, slots are had `ahead` steps before what is written needs them.
    """

    name = "prefix"
    recalls = True

    def __init__(
        self,
        pool_slots: int,
        *,
        block_size: int = 16,
        watermark: float = 0.0,
        caching: bool = True,
        unknown_first: bool = True,
        ahead: int = 0,
    ) -> None:
        if block_size < 1:
            raise ValueError(f"block_size is {block_size}; it must be at least one slot")
        if pool_slots < block_size:
            raise ValueError(f"pool_slots is {pool_slots}; the pool must hold at least one block of {block_size}")
        if not 0 <= watermark < 1:
            raise ValueError(f"watermark is {watermark}; it must be a share of the pool between 0 and 1")
        super().__init__()
        self.block_size = block_size
        self.blocks = pool_slots // block_size
        self.pool_slots = self.blocks * block_size
        # The engine takes the share of all its blocks, the null block included, which lies outside this pool.
        self.watermark_blocks = int(watermark * (self.blocks + 1))
        self.caches = caching
        self.ahead = ahead
        self.pool = BlockPool(self.blocks, unknown_first=unknown_first)
        self.holdings = Holdings(
            self.pool, [FullGroup()], block_size=block_size, max_model_len=ENDLESS, caching=caching
        )
        self._next: tuple[int, Holding] | None = None
        """The latest sequence that owns nothing and was looked up: the head of a queue comes again and again."""
        self.members = PhaseMembers(phases_of(block_size))
        """Decoding sequences by the clock, modulo the block size, at which each needs a new block."""

    # What is there.

    def capacity(self, tokens: int) -> int:
        """Whole blocks."""
        return -(-tokens // self.block_size) * self.block_size

    def last_growth(self, tokens: int) -> int:
        """At the start of its last block."""
        return (tokens - 1) // self.block_size * self.block_size

    def owned(self, sequence: Sequence) -> int:
        """Its block table."""
        held = self._held.get(sequence.id)
        return len(held.tables[0]) * self.block_size if held else 0

    def table(self, sequence: int) -> Seq[int]:
        """The block table of the sequence with this id, which owns something. Pure."""
        return self._held[sequence].tables[0]

    @property
    def free_blocks(self) -> int:
        """Blocks that nobody references, cached ones included."""
        return self.pool.free_blocks

    @property
    def shared_slots(self) -> int:
        """Every reference to a block but the first saves it."""
        return (self.pool.references - (self.blocks - self.pool.free_blocks)) * self.block_size

    def lookup(self, sequence: Sequence) -> int:
        """Tokens at its start that are cached."""
        if sequence.written:
            return 0
        return self.holdings.hit(self._holding(sequence), sequence.tokens).tokens

    def hit_lasts(self, sequence: Sequence, limit: int) -> int:
        """Until a block that it finds is evicted, or the next one of its content filled."""
        if sequence.written or not self.caches:
            return limit
        phases, clock, pool = self.members.phases, self.decodes.clock, self.pool
        holding = self._holding(sequence)
        (found,) = self.holdings.hit(holding, sequence.tokens).tables
        if free := {block for block in found if pool.is_free(block)}:
            takes = clock + self.ahead
            limit = phases.served(takes, limit, pool.untouched(free, phases.blocks(takes, limit)))
        place = len(found)
        filled = (place + 1) * self.block_size
        if filled < sequence.tokens:
            for other in self.members:
                ahead = filled - 1 - other.origin - clock
                if 0 <= ahead < limit and self._held[other.id].chain[place] == holding.chain[place]:
                    limit = ahead
        return limit

    def _holding(self, sequence: Sequence) -> Holding:
        held = self._held.get(sequence.id)
        if held is None and self._next and self._next[0] == sequence.id:
            held = self._next[1]
        if held is None:
            held = self.holdings.open(sequence.contents, sequence.prompt_tokens, owner=sequence.id)
            self._next = sequence.id, held
        return held

    def usage(self) -> PoolUse:
        """Written slots count once, however many hold them; what nobody references is cached, or free."""
        size, pool = self.block_size, self.pool
        used = self._prefill_written + self.decodes.written - self.shared_slots
        dead = self.dead
        cached = pool.cached_blocks * size
        free = pool.free_blocks * size - cached
        return PoolUse(used, self.pool_slots - used - dead - cached - free, dead, 0, cached, free, free)

    def audit(self, live: Iterable[Sequence]) -> None:
        """The block tables of the live ones against the pool, and what they have written against the counts."""
        owners = self._owners(live, "own blocks")
        self.pool.audit(self._held[sequence.id].tables[0] for sequence in owners)
        if strays := self.members.strays():
            raise CheckError(f"{self.name}: {strays} sequences are counted in a phase and are not there")

    def listen(self, listener: CacheListener) -> None:
        """A piece is a block, by the number of its content."""
        self.pool.listen(listener, self.block_size)

    # What changes it.

    def acquire(self, asks: Seq[Ask], *, decodes: bool = False) -> Grant | Short:
        """An admitted sequence starts behind what is cached of it: `written` is set to that."""
        asked = [self._asked(ask) for ask in asks]
        if decodes:
            # They need a block for a token to come, or the next one fills the block that they have.
            clock = self.decodes.clock
            crossing = self.members.crossing
            asked += [self._next_token(sequence) for sequence in crossing(clock + self.ahead)]
            if self.block_size > 1 and not self.ahead:
                asked += [self._next_token(sequence) for sequence in crossing(clock + 1)]
            asked.sort(key=lambda entry: entry.sequence.admission)
        if (short := self._shortage(asked)) is not None:
            return short
        self._next = None
        # What was found when the call began is theirs before anybody takes a block: it may be the next of the queue.
        for entry in asked:
            if entry.hit:
                self.holdings.take_over(entry.holding, entry.hit, entry.want.known_tokens)
                entry.sequence.written = entry.hit.tokens
                self._prefill_written += entry.hit.tokens
        for entry in asked:
            self.holdings.acquire(entry.holding, entry.want)
            self._held[entry.sequence.id] = entry.holding
        self.count()
        return _GRANT

    def warm(self, content: Content, prompt_tokens: int, tokens: int) -> None:
        """Its whole blocks."""
        counts = self.pool.counted
        tokens = min(tokens, self.pool_slots)
        self.holdings.leave_behind(self.holdings.open(content, prompt_tokens), tokens)
        self.pool.counted = counts

    def flush(self) -> bool:
        """The map is emptied; which block is handed out next stays as it was."""
        self._next = None
        return self.pool.forget()

    def _shortage(self, asked: Iterable[_Asked]) -> Short | None:
        """The first that cannot have what it asks for, behind those before it. Pure.

        A gate and a watermark hold nothing back: what is taken counts for those behind. So does a free block that two
        of them have found, once.
        """
        left, lacking = self.pool.free_blocks, self.holdings.lacking
        revived: set[int] = set()
        for _, holding, want, hit, demands in asked:
            found = set(filter(self.pool.is_free, hit.tables[0])) if hit else set()
            again = len(found & revived)
            takes = lacking(holding, want, hit) - again
            least = lacking(holding, demands, hit) - again if demands else takes
            if least > left:
                free = self.pool.free_blocks * self.block_size
                return Short("capacity", least * self.block_size, free, free)
            left -= takes
            revived |= found
        return None

    def _asked(self, ask: Ask) -> _Asked:
        sequence = ask.sequence
        if sequence.decoding:
            return self._next_token(sequence)
        holding = self._holding(sequence)
        # One that comes back from host memory brings along what it had written.
        hit = self.holdings.hit(holding, sequence.tokens) if ask.admit and not sequence.written else None
        computed = hit.tokens if hit else sequence.written
        want = Want(computed, ask.tokens - computed, sequence.tokens)
        if not ask.admit:
            return _Asked(sequence, holding, want)
        spare = 0 if ask.alone else self.watermark_blocks
        return _Asked(sequence, holding, want, hit, want._replace(gate_tokens=ask.gate, spare_blocks=spare))

    def _next_token(self, sequence: Sequence) -> _Asked:
        written = self.decodes.written_of(sequence)
        return _Asked(sequence, self._held[sequence.id], Want(written + self.ahead, 1, written + 1))

    def begin_decode(self, sequence: Sequence) -> None:
        """It joins its phase."""
        self._prefill_written -= sequence.written
        self.decodes.join(sequence)
        self.members.add(sequence)

    def _leave(self, sequence: Sequence) -> None:
        self.members.remove(sequence)
        super()._leave(sequence)

    def release(self, sequence: Sequence) -> None:
        """What it leaves stays cached, as far as the blocks are full."""
        held = self._held.pop(sequence.id, None)
        if held is None:
            raise CheckError(f"request {sequence.id} gives back blocks it does not own (a double free)")
        self._forget(sequence)
        self.holdings.release(held)
        self.count()

    def forget(self, streams: Iterable[int]) -> None:
        """By the numbers of blocks that have them."""
        self.holdings.forget(streams)

    def count(self) -> None:
        """Bring the counts of upkeep up to date. Mutates."""
        upkeep, pool = self.upkeep, self.pool
        upkeep.allocations, upkeep.frees, upkeep.evictions = pool.left, pool.joined, pool.evicted
        upkeep.table_bytes = pool.most_references * TABLE_ENTRY_BYTES

    def leap(self, limit: int) -> PrefixLeap:
        """Over block crossings, up to a shortage."""
        return PrefixLeap(self, limit)

    def moves(self, taking: int, filling: int) -> list[tuple[Holding, bool, bool]]:
        """Who takes a block at clock `taking`, and who has filled one by clock `filling`, in admission order. Pure."""
        takers, fillers = self.members.crossing(taking), self.members.crossing(filling)
        takes, fills = {sequence.id for sequence in takers}, {sequence.id for sequence in fillers}
        both = {sequence.id: sequence for sequence in (*takers, *fillers)}
        ordered = sorted(both.values(), key=lambda sequence: sequence.admission)
        return [(self._held[s.id], s.id in takes, s.id in fills) for s in ordered]

    def crossing(self, clock: int, steps: int) -> list[Holding]:
        """Who takes a block in `steps` steps from `clock` on: step by step, in admission order, each once. Pure."""
        return [self._held[sequence.id] for sequence in self.members.in_order(clock, steps)]


_GRANT = Grant()
