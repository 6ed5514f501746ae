"""`paged`: fixed blocks, taken one by one as a sequence grows; nothing is reserved for output.

Without prefix caching a block has no identity that matters, so the pool is counts: free blocks, the length of each
block table, and for the decoding sequences a histogram of block phases (how many need a new block at which clock,
modulo the block size). Rules 1, 10-16 of vLLM's manager: a sequence with n written tokens owns ceil(n / block) blocks.
"""

from collections.abc import Iterable
from collections.abc import Sequence as Seq
from functools import lru_cache
from itertools import accumulate
from operator import mul

from kvsim.errors import CheckError
from kvsim.memory.interface import Allocator, Leap
from kvsim.request import Sequence
from kvsim.step import Ask, Chunk, DecodeSet, Grant, PoolUse, Short


class PagedAllocator(Allocator):
    """Blocks and block tables.

    `block_size` is in slots, 1 to 256. `watermark` is the share of all blocks that an admission must leave free
    while anything is running (0: none).
    """

    name = "paged"

    def __init__(self, pool_slots: int, *, block_size: int = 16, watermark: float = 0.0) -> None:
        if not 1 <= block_size <= 256:
            raise ValueError(f"block_size is {block_size}; it must be between 1 and 256 slots")
        if pool_slots < block_size:
            raise ValueError(f"pool_slots is {pool_slots}; the pool must hold at least one block of {block_size}")
        if not 0 <= watermark < 1:
            raise ValueError(f"watermark is {watermark}; it must be a share of the pool between 0 and 1")
        self.block_size = block_size
        self.blocks = pool_slots // block_size
        self.pool_slots = self.blocks * block_size
        # The engine takes the share of all its blocks, the null block included, which lies outside this pool.
        self.watermark_blocks = int(watermark * (self.blocks + 1))
        self.decodes = DecodeSet()
        self.free_blocks = self.blocks
        self.references = 0
        """Sum of the reference counts of all blocks; while nothing is shared, the blocks in use."""
        self._tables: dict[int, int] = {}
        """Blocks owned by each sequence that is not decoding; a decoding one's follow from the clock."""
        self._prefill_written = 0
        self._phases = [0] * block_size
        """Decoding sequences by the clock, modulo the block size, at which each needs a new block."""
        self._ahead: set[int] = set()
        """Decoding sequences that got this step's block one by one."""

    def capacity(self, tokens: int) -> int:
        return -(-tokens // self.block_size) * self.block_size

    def last_growth(self, tokens: int) -> int:
        return (tokens - 1) // self.block_size * self.block_size

    def owned(self, sequence: Sequence) -> int:
        return self._table(sequence) * self.block_size

    def _table(self, sequence: Sequence) -> int:
        if not sequence.decoding:
            return self._tables.get(sequence.id, 0)
        blocks = -(-(sequence.origin + self.decodes.clock) // self.block_size)
        return blocks + 1 if sequence.id in self._ahead else blocks

    def acquire(self, asks: Seq[Ask], *, decodes: bool = False) -> Grant | Short:
        size, free = self.block_size, self.free_blocks
        need = self._phases[self.decodes.clock % size] if decodes else 0
        if need > free:
            return self._short(need)
        more: list[int] = []
        for ask in asks:
            table = self._table(ask.sequence)
            blocks = max(0, -(-ask.tokens // size) - table)
            if ask.admit:
                # The gate, where there is one, asks for at least what the first chunk takes.
                least = max(blocks, -(-ask.gate // size) - table) + (0 if ask.alone else self.watermark_blocks)
                if need + least > free:
                    return self._short(least)
            need += blocks
            if need > free:
                return self._short(blocks)
            more.append(blocks)
        self.free_blocks = free - need
        self.references += need
        for ask, blocks in zip(asks, more, strict=True):
            if blocks:
                if ask.sequence.decoding:
                    self._ahead.add(ask.sequence.id)
                else:
                    self._tables[ask.sequence.id] = self._tables.get(ask.sequence.id, 0) + blocks
        return _GRANT

    def _short(self, blocks: int) -> Short:
        free = self.free_blocks * self.block_size
        return Short("capacity", blocks * self.block_size, free, free)

    def settle(self, chunks: Iterable[Chunk]) -> bool:
        self.decodes.advance()
        if self._ahead:
            self._ahead.clear()
        for chunk in chunks:
            chunk.sequence.written += chunk.tokens
            self._prefill_written += chunk.tokens
        return False

    def begin_decode(self, sequence: Sequence) -> None:
        del self._tables[sequence.id]
        self._prefill_written -= sequence.written
        self.decodes.join(sequence)
        self._phases[-sequence.origin % self.block_size] += 1

    def release(self, sequence: Sequence) -> None:
        blocks = self._table(sequence)
        if not blocks:
            raise CheckError(f"request {sequence.id} gives back blocks it does not own (a double free)")
        if sequence.decoding:
            self._phases[-sequence.origin % self.block_size] -= 1
            self.decodes.leave(sequence)
            self._ahead.discard(sequence.id)
        else:
            del self._tables[sequence.id]
            self._prefill_written -= sequence.written
        self.free_blocks += blocks
        self.references -= blocks

    def leap(self, limit: int) -> "PagedLeap":
        return PagedLeap(self, limit)

    def usage(self) -> PoolUse:
        size = self.block_size
        used = self.decodes.written + self._prefill_written
        free = self.free_blocks * size
        return PoolUse(used, self.pool_slots - free - used, 0, 0, 0, free, free)

    def audit(self, live: Iterable[Sequence]) -> None:
        owners = [s for s in live if self._table(s)]
        blocks = sum(self._table(s) for s in owners)
        written = sum(self.decodes.written_of(s) for s in owners)
        if self.free_blocks + self.references != self.blocks:
            raise CheckError(
                f"paged: {self.free_blocks} free and {self.references} referenced blocks do not add up to the pool's "
                f"{self.blocks} (a wrong reference count, a leak or a double free)"
            )
        if blocks != self.references:
            raise CheckError(
                f"paged: the reference counts add up to {self.references}, but the block tables of live requests "
                f"hold {blocks} blocks (a leak, or a wrong reference count)"
            )
        used = self.usage().used
        if written != used or used > blocks * self.block_size:
            raise CheckError(f"paged: {used} slots are counted as used, live requests have written {written} tokens")
        if sum(self._phases) != self.decodes.count:
            raise CheckError(f"paged: {sum(self._phases)} block phases for {self.decodes.count} decoding sequences")


class PagedLeap(Leap):
    """Decode steps of a paged pool: who crosses a block boundary when follows from the histogram of phases."""

    __slots__ = ("_allocator", "_first", "_rows")

    def __init__(self, allocator: PagedAllocator, limit: int) -> None:
        self._allocator = allocator
        size, count, free = allocator.block_size, allocator.decodes.count, allocator.free_blocks
        self._first = allocator.decodes.clock % size
        self.bound = count * size
        if -(-limit // size) * count <= free:
            self.steps = limit
        else:
            rounds, rest = divmod(free, count)
            steps = rounds * size
            for crossing in self._phases_from(self._first):
                rest -= crossing
                if rest < 0:
                    break
                steps += 1
            self.steps = min(limit, steps)

    def _phases_from(self, phase: int) -> list[int]:
        phases = self._allocator._phases
        return phases[phase:] + phases[:phase]

    def _blocks(self, steps: int) -> int:
        """Blocks that the first `steps` steps take."""
        allocator = self._allocator
        rounds, rest = divmod(steps, allocator.block_size)
        blocks = rounds * allocator.decodes.count
        if rest:
            phases, first = allocator._phases, self._first
            blocks += sum(phases[first : first + rest])
            wrapped = first + rest - allocator.block_size
            if wrapped > 0:
                blocks += sum(phases[:wrapped])
        return blocks

    def apply(self, steps: int) -> None:
        allocator, blocks = self._allocator, self._blocks(steps)
        allocator.free_blocks -= blocks
        allocator.references += blocks
        allocator.decodes.advance(steps)

    def use_at(self, step: int) -> PoolUse:
        allocator = self._allocator
        free = (allocator.free_blocks - self._blocks(step + 1)) * allocator.block_size
        used = allocator.decodes.written + allocator.decodes.count * step
        return PoolUse(used, allocator.pool_slots - free - used, 0, 0, 0, free, free)

    def unwritten_sum(self, steps: int, a: int, b: int) -> int:
        # Slack repeats with the block size; with the clock's own phase as origin the sum is a difference of two
        # prefix sums, each a whole number of rounds and a row of a table.
        first = self._first
        a -= b * first
        return self._prefix(first + steps, a, b) - self._prefix(first, a, b)

    def _prefix(self, x: int, a: int, b: int) -> int:
        """Sum over t in [0, x) of (a + b t) x slack at phase t."""
        allocator = self._allocator
        size, count, phases = allocator.block_size, allocator.decodes.count, allocator._phases
        plain, weighted = _slack_tables(size)
        rounds, rest = divmod(x, size)
        per_round = count * (size * (size + 1) // 2)
        total = 0
        if rounds:
            total += a * rounds * per_round
            if b:
                whole = sum(map(mul, phases, weighted[size]))
                total += b * (size * per_round * (rounds * (rounds - 1) // 2) + rounds * whole)
        if rest:
            part = sum(map(mul, phases, plain[rest]))
            total += (a + b * rounds * size) * part
            if b:
                total += b * sum(map(mul, phases, weighted[rest]))
        return total

    def unwritten_peak(self, first: int, last: int) -> int:
        allocator = self._allocator
        size, count = allocator.block_size, allocator.decodes.count
        start = (self._first + first) % size
        slack: int = sum(map(mul, allocator._phases, _slack_rows(size)[start]))
        # From one step to the next every member writes a token, and those that cross get a block.
        crossings = self._phases_from(start)[1 : min(last - first, size)]
        return slack + max(accumulate((size * n - count for n in crossings), initial=0))


@lru_cache(maxsize=8)
def _slack_rows(size: int) -> list[list[int]]:
    """Row t, column p: slots owned and not written during a step at phase t by a sequence that crosses at phase p."""
    return [[size - (t - p) % size for p in range(size)] for t in range(size)]


@lru_cache(maxsize=8)
def _slack_tables(size: int) -> tuple[list[list[int]], list[list[int]]]:
    """Prefix sums over t of the slack rows, plain and weighted by t: row x sums t in [0, x)."""
    plain, weighted = [[0] * size], [[0] * size]
    for t, row in enumerate(_slack_rows(size)):
        plain.append([s + r for s, r in zip(plain[-1], row, strict=True)])
        weighted.append([s + t * r for s, r in zip(weighted[-1], row, strict=True)])
    return plain, weighted


_GRANT = Grant()
