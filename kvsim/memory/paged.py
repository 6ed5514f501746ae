"""`paged`: fixed blocks, taken one by one as a sequence grows; nothing is reserved for output.

Without prefix caching a block has no identity that matters, so the pool is counts: free blocks, the length of each
block table, and for the decoding sequences their block phases (how many need a new block at which clock, modulo the
block size; see `phases`). Rules 1, 10-16 of vLLM's manager: with n written tokens a sequence owns ceil(n / block).
"""

from collections.abc import Iterable
from collections.abc import Sequence as Seq

from kvsim.errors import CheckError
from kvsim.memory.books.sharing import Sharing
from kvsim.memory.books.written import WrittenBooks
from kvsim.memory.phases import PhaseLeap, phases_of
from kvsim.request import Sequence
from kvsim.step import Ask, Chunk, Grant, PoolUse, Short

TABLE_ENTRY_BYTES = 4
"""A block table holds a 32-bit number a block, as vLLM's do (torch.int32)."""


class BlockAllocator(WrittenBooks):
    """A pool of `block_size`-slot blocks that sequences take one by one as they grow, wherever the blocks lie.

    `watermark` is the share of all blocks that an admission must leave free while anything is running (0: none).
    """

    def __init__(self, pool_slots: int, *, block_size: int, watermark: float = 0.0) -> None:
        super().__init__()
        self.block_size = block_size
        self.blocks = pool_slots // block_size
        self.pool_slots = self.blocks * block_size
        # The engine takes the share of all its blocks, the null block included, which lies outside this pool.
        self.watermark_blocks = int(watermark * (self.blocks + 1))
        self.free_blocks = self.blocks
        self.references = 0
        """Sum of the reference counts of all blocks: the entries of all block tables."""
        self.sharing = Sharing(block_size)
        """What sequences hold in common; nothing unless they fork."""
        self.phases = phases_of(block_size)
        """Decoding sequences by the clock, modulo the block size, at which each needs a new block."""
        self._tables: dict[int, int] = {}
        """Blocks owned by each sequence that is not decoding; a decoding one's follow from the clock."""
        self._ahead: set[int] = set()
        """Decoding sequences that got this step's block one by one."""
        self._together = False
        """All of them got it at once."""

    def capacity(self, tokens: int) -> int:
        return -(-tokens // self.block_size) * self.block_size

    def last_growth(self, tokens: int) -> int:
        return (tokens - 1) // self.block_size * self.block_size

    def owned(self, sequence: Sequence) -> int:
        return self._table(sequence) * self.block_size

    @property
    def shared_slots(self) -> int:
        return self.sharing.blocks * self.block_size

    @property
    def written_slots(self) -> int:
        """Slots that hold the KV of a live sequence, shared ones counted once."""
        return self.decodes.written + self._prefill_written - self.sharing.slots

    @property
    def retired_unwritten(self) -> int:
        """Slots of sequences that have ended and not yet left, which nobody has written."""
        return sum(self._tables[number] for number in self._retired) * self.block_size - self.dead

    def _table(self, sequence: Sequence) -> int:
        if not sequence.decoding:
            return self._tables.get(sequence.id, 0)
        written = sequence.origin + self.decodes.clock
        if self._together or sequence.id in self._ahead:
            return written // self.block_size + 1
        return -(-written // self.block_size)

    def acquire(self, asks: Seq[Ask], *, decodes: bool = False) -> Grant | Short:
        size, free, sharing = self.block_size, self.free_blocks, self.sharing
        need = self.phases.crossing(self.decodes.clock) + sharing.copies_due if decodes else 0
        if need > free:
            return self._short(need)
        more: list[int] = []
        writers: list[int] = []  # those that get a copy of their last block
        for ask in asks:
            table = self._table(ask.sequence)
            blocks = max(0, -(-ask.tokens // size) - table)
            if not decodes and sharing.must_copy(ask.sequence.id, writers):
                writers.append(ask.sequence.id)
                blocks += 1
            if ask.admit:
                # The gate, where there is one, asks for at least what the first chunk takes.
                least = max(blocks, -(-ask.gate // size) - table) + (0 if ask.alone else self.watermark_blocks)
                if need + least > free:
                    return self._short(least)
            need += blocks
            if need > free:
                return self._short(blocks)
            more.append(blocks)
        copies, copied = (len(writers), sum(map(sharing.copy, writers))) if writers else (0, 0)
        if decodes:
            self._together = True
            if sharing.copies_due:
                copies, copied = sharing.copy_all()
        for ask, blocks in zip(asks, more, strict=True):
            number = ask.sequence.id
            if not ask.sequence.decoding and blocks:
                self._tables[number] = self._tables.get(number, 0) + blocks
            elif blocks and number not in writers:
                self._ahead.add(number)
        if need:
            self.take(need, need - copies)
        if not copies:
            return _GRANT
        self.upkeep.copies += copies
        return Grant(copied)

    def take(self, blocks: int, entries: int) -> None:
        """So many blocks leave the free ones, for so many new entries of block tables. Mutates."""
        upkeep = self.upkeep
        self.free_blocks -= blocks
        self.references += entries
        upkeep.allocations += blocks
        if self.references * TABLE_ENTRY_BYTES > upkeep.table_bytes:
            upkeep.table_bytes = self.references * TABLE_ENTRY_BYTES

    def _short(self, blocks: int) -> Short:
        free = self.free_blocks * self.block_size
        return Short("capacity", blocks * self.block_size, free, free)

    def settle(self, chunks: Iterable[Chunk], *, stalled: bool = False) -> bool:
        if not stalled:
            self.decodes.advance()
            self._together = False
            if self.sharing.moving:
                self.sharing.landed()
            if self._ahead:
                self._ahead.clear()
        self._write(chunks)
        return False

    def begin_decode(self, sequence: Sequence) -> None:
        blocks = self._tables.pop(sequence.id)
        self._prefill_written -= sequence.written
        self._join(sequence)
        if blocks > self._table(sequence):
            self._ahead.add(sequence.id)

    def _join(self, sequence: Sequence) -> None:
        self.decodes.join(sequence)
        self.phases.add(-sequence.origin % self.block_size)

    def _leave(self, sequence: Sequence) -> None:
        self.phases.remove(-sequence.origin % self.block_size)
        super()._leave(sequence)
        self._ahead.discard(sequence.id)

    def retire(self, sequence: Sequence) -> None:
        blocks = self._table(sequence)
        super().retire(sequence)
        self._tables[sequence.id] = blocks

    def release(self, sequence: Sequence) -> None:
        blocks = self._table(sequence)
        if not blocks:
            raise CheckError(f"request {sequence.id} gives back blocks it does not own (a double free)")
        self._tables.pop(sequence.id, None)
        self._forget(sequence)
        sharing = self.sharing
        freed = sharing.release(sequence.id, blocks) if sharing.runs or sharing.last or sharing.moving else blocks
        self.free_blocks += freed
        self.references -= blocks
        self.upkeep.frees += freed

    def leap(self, limit: int) -> "PagedLeap":
        return PagedLeap(self, limit)

    def usage(self) -> PoolUse:
        used = self.written_slots
        free, dead, moving = self.free_blocks * self.block_size, self.dead, self.sharing.moving
        return PoolUse(used, self.pool_slots - free - used - dead - moving, dead, moving, 0, free, free)

    def audit(self, live: Iterable[Sequence]) -> None:
        owners = [s for s in live if self._table(s)]
        blocks = sum(self._table(s) for s in owners)
        written = sum(self.decodes.written_of(s) for s in owners)
        in_use = self.references - self.sharing.blocks
        if self.free_blocks + in_use != self.blocks:
            raise CheckError(
                f"{self.name}: {self.free_blocks} free and {in_use} referenced blocks do not add up to the "
                f"pool's {self.blocks} (a wrong reference count, a leak or a double free)"
            )
        if blocks != self.references:
            raise CheckError(
                f"{self.name}: the reference counts add up to {self.references}, but the block tables of live requests "
                f"hold {blocks} blocks (a leak, or a wrong reference count)"
            )
        use = self.usage()
        if written - self.sharing.slots != use.used + use.dead or use.used + use.dead > in_use * self.block_size:
            raise CheckError(
                f"{self.name}: {use.used} slots are counted as used and {use.dead} as dead, live requests have "
                f"written {written} tokens and share {self.sharing.slots}"
            )
        phases = self.phases.recount()
        if phases != self.decodes.count:
            raise CheckError(f"{self.name}: {phases} block phases for {self.decodes.count} decoding sequences")


class PagedAllocator(BlockAllocator):
    """Blocks and block tables.

    `block_size` is in slots, 1 to 256. `watermark` is the share of all blocks that an admission must leave free
    while anything is running (0: none).
    """

    name = "paged"
    shares = True

    def __init__(self, pool_slots: int, *, block_size: int = 16, watermark: float = 0.0) -> None:
        if not 1 <= block_size <= 256:
            raise ValueError(f"block_size is {block_size}; it must be between 1 and 256 slots")
        if pool_slots < block_size:
            raise ValueError(f"pool_slots is {pool_slots}; the pool must hold at least one block of {block_size}")
        if not 0 <= watermark < 1:
            raise ValueError(f"watermark is {watermark}; it must be a share of the pool between 0 and 1")
        super().__init__(pool_slots, block_size=block_size, watermark=watermark)

    def fork(self, parent: Sequence, child: Sequence) -> int:
        written = self.decodes.written_of(parent)
        child.tokens, child.written = written + 1, written
        if parent.decoding:
            self._join(child)
        else:
            self._tables[child.id] = self._tables[parent.id]
            self._prefill_written += written
        self.take(0, -(-written // self.block_size))
        self.sharing.fork(parent.id, child.id, written)
        return written // self.block_size * self.block_size


class PagedLeap(PhaseLeap):
    """Decode steps of a pool of blocks: who crosses a block boundary when follows from the phases."""

    __slots__ = ("_allocator",)

    def __init__(self, allocator: BlockAllocator, limit: int) -> None:
        self._allocator = allocator
        phases, clock = allocator.phases, allocator.decodes.clock
        # Blocks that must be copied first are had by a step of their own.
        due = allocator.sharing.copies_due
        steps = 0 if due else phases.served(clock, limit, allocator.free_blocks)
        super().__init__(phases, clock, steps, others=allocator.retired_unwritten if allocator.dead else 0)

    def apply(self, steps: int) -> None:
        allocator = self._allocator
        blocks = self._phases.blocks(self._clock, steps)
        allocator.take(blocks, blocks)
        allocator.decodes.advance(steps)

    def use_at(self, step: int) -> PoolUse:
        allocator = self._allocator
        free = (allocator.free_blocks - self._phases.blocks(self._clock, step + 1)) * allocator.block_size
        used, dead = allocator.written_slots + allocator.decodes.count * step, allocator.dead
        return PoolUse(used, allocator.pool_slots - free - used - dead, dead, 0, 0, free, free)


_GRANT = Grant()
