"""`no-cache`: no KV at all, every step computes the whole context again; the zero line of a comparison."""

from collections.abc import Iterable
from collections.abc import Sequence as Seq

from kvsim.errors import CheckError
from kvsim.memory.interface import Allocator, Leap
from kvsim.request import Sequence
from kvsim.step import Ask, Chunk, DecodeSet, Grant, PoolUse, Short, Upkeep


class NoCacheAllocator(Allocator):
    """A pool of no slots in which everybody finds room, since nothing is kept from one step to the next.

    `written` counts the tokens that have been computed at least once. What it costs to compute all of them in every
    step is the timing's business (`StepPlan.pairs`).
    """

    name = "no-cache"
    pool_slots = 0
    keeps = False

    def __init__(self) -> None:
        self.decodes = DecodeSet()
        self.upkeep = Upkeep()
        self._members: set[int] = set()

    def capacity(self, tokens: int) -> int:
        return 0

    def owned(self, sequence: Sequence) -> int:
        return 0

    def last_growth(self, tokens: int) -> int:
        return 0

    def acquire(self, asks: Seq[Ask], *, decodes: bool = False) -> Grant | Short:
        self._members.update(ask.sequence.id for ask in asks)
        return Grant()

    def settle(self, chunks: Iterable[Chunk], *, stalled: bool = False) -> bool:
        if not stalled:
            self.decodes.advance()
        for chunk in chunks:
            chunk.sequence.written += chunk.tokens
        return False

    def land(self, sequence: Sequence) -> None:
        pass

    def begin_decode(self, sequence: Sequence) -> None:
        self.decodes.join(sequence)

    def retire(self, sequence: Sequence) -> None:
        self.decodes.leave(sequence)

    def release(self, sequence: Sequence) -> None:
        if sequence.id not in self._members:
            raise CheckError(f"request {sequence.id} leaves without having been let in (a double free)")
        self._members.discard(sequence.id)
        if sequence.decoding:
            self.decodes.leave(sequence)

    def leap(self, limit: int) -> "NothingLeap":
        return NothingLeap(self.decodes, limit)

    def usage(self) -> PoolUse:
        return PoolUse(0, 0, 0, 0, 0, 0, 0)

    def audit(self, live: Iterable[Sequence]) -> None:
        live = list(live)
        strays = self._members - {sequence.id for sequence in live}
        if strays:
            raise CheckError(f"{self.name}: requests {sorted(strays)} were let in and are not live (a leak)")
        written = sum(self.decodes.written_of(sequence) for sequence in live if sequence.decoding)
        if written != self.decodes.written:
            raise CheckError(
                f"{self.name}: {self.decodes.written} tokens count as written by those that decode, they have {written}"
            )


class NothingLeap(Leap):
    """Decode steps that need no room."""

    __slots__ = ("_decodes",)

    def __init__(self, decodes: DecodeSet, steps: int) -> None:
        self._decodes = decodes
        self.steps = steps
        self.bound = 0

    def use_at(self, step: int) -> PoolUse:
        return PoolUse(0, 0, 0, 0, 0, 0, 0)

    def unwritten_sum(self, steps: int, a: int, b: int) -> int:
        return 0

    def unwritten_peak(self, first: int, last: int) -> int:
        return 0

    def apply(self, steps: int) -> None:
        self._decodes.advance(steps)
