"""The seam between the KV memory and everything above it: one allocator, and its verbs.

An allocator has no clock and no truth: it never learns how long an output will be (only `reserve` with `pow2` or
`oracle` may, by definition). Every verb that can fail is atomic: it succeeds whole or changes nothing.
Room is counted in slots; one slot holds one token's KV.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from collections.abc import Sequence as Seq
from typing import NamedTuple

from kvsim.content import Content
from kvsim.memory.residency import CacheListener
from kvsim.request import Sequence
from kvsim.step import Ask, Chunk, DecodeSet, Grant, PoolUse, Short, Upkeep


class Leap(ABC):
    """Up to `steps` decode steps of the present decode set, each of which the pool can serve.

    Pure until `apply`. With t_j = a + b j the time of step j (from 0), the weighted sums below let a recorder
    integrate memory over time without visiting a step.
    """

    __slots__ = ("bound", "steps")

    steps: int
    bound: int
    """At no step are more slots than this owned and not written."""

    @abstractmethod
    def use_at(self, step: int) -> PoolUse:
        """Where the slots are during step number `step` (from 0), its own slots granted."""

    @abstractmethod
    def unwritten_sum(self, steps: int, a: int, b: int) -> int:
        """Sum over the first `steps` steps j of (a + b j) x slots owned and not written during step j."""

    @abstractmethod
    def unwritten_peak(self, first: int, last: int) -> int:
        """Most slots owned and not written during any of the steps first..last-1."""

    def cached_sum(self, steps: int, a: int, b: int) -> int:
        """Sum over the first `steps` steps j of (a + b j) x slots cached during step j; these only become fewer."""
        return self.use_at(0).cached * (a * steps + b * (steps * (steps - 1) // 2)) if steps else 0

    @abstractmethod
    def apply(self, steps: int) -> None:
        """Do `steps` of them: equal, bit for bit, to that many times acquire and settle. Mutates.

        What is stored or evicted in a step is told to the listener while `decodes.clock` stands at that step.
        """


class Extent(NamedTuple):
    """A region of real addresses that a sequence holds.

    It takes `slots` from `start` on, as asked, and behind them the `rounding` slots of the address space. `moving`:
    what it holds is being copied into it. `beside`: it is held in addition to the sequence's own region, as the source
    or the target of a copy, until the step is over.
    """

    sequence: int
    """Its id."""
    start: int
    slots: int
    rounding: int
    moving: bool = False
    beside: bool = False


class Allocator(ABC):
    """A pool of slots and the rules by which sequences get, keep and give back room in it.

    `decodes` is the set of decoding sequences; only the allocator changes it.
    """

    name: str
    pool_slots: int
    decodes: DecodeSet
    upkeep: Upkeep
    has_holes: bool = False
    """Free slots can be lost to shape."""
    shares: bool = False
    """Sequences can hold slots in common: `fork` works."""
    caches: bool = False
    """What is written can be found again by its content: `lookup` may answer more than 0."""
    recalls: bool = False
    """Of what an admitted sequence did not find it can be said whether it was cached before."""
    keeps: bool = True
    """KV is kept from one step to the next; where it is not, each step computes all of it again."""

    @property
    def shared_slots(self) -> int:
        """Slots that sharing saves now: how many more the same sequences would take without. Pure."""
        return 0

    @property
    def most_slots(self) -> int:
        """The largest `capacity` that the empty pool grants; whoever needs more can never be served. Pure."""
        return self.pool_slots

    def lookup(self, sequence: Sequence) -> int:
        """Tokens at the start of a waiting sequence that need not be computed, if it is admitted now. Pure.

        The acquire that admits it asks for slots behind them, and sets `written` to them. 0 where nothing is kept
        beyond a sequence's life.
        """
        return 0

    def hit_lasts(self, sequence: Sequence, limit: int) -> int:
        """How many of `limit` decode steps leave as it is what `lookup` finds of a waiting sequence. Pure.

        And with it the room that its admission takes. Only where `caches` says so can it change.
        """
        return limit

    def listen(self, listener: CacheListener) -> None:
        """Tell `listener` what is stored, found and evicted from now on; only where `caches` says so. Mutates."""
        raise NotImplementedError(f"{self.name} keeps nothing that could be found again")

    def warm(self, content: Content, prompt_tokens: int, tokens: int) -> None:
        """Leave behind what a sequence of these `tokens` would, that was served and has finished. Mutates.

        `prompt_tokens` of them are its prompt; what there is no room for is left out, and what was cached before is
        evicted as ever. Not counted in `upkeep`. Only where `caches` says so, and while no sequence owns anything.
        """
        raise NotImplementedError(f"{self.name} keeps nothing that could be found again")

    def flush(self) -> bool:
        """Forget all that is cached; False, and nothing has changed, while any sequence owns something. Mutates.

        Only where `caches` says so. As `reset_prefix_cache` of vLLM and the memory's part in SGLang's `flush_cache`.
        """
        raise NotImplementedError(f"{self.name} keeps nothing that could be forgotten")

    @abstractmethod
    def acquire(self, asks: Seq[Ask], *, decodes: bool = False) -> Grant | Short:
        """Get slots for all `asks`, in admission order, and with `decodes` one more for every decoding sequence.

        A decoding sequence asks once a step, with all the others or by itself.
        Mutates only when everything could be had; otherwise says why not. Cost: O(asks), and for allocators that
        keep addresses O(sequences that outgrow their region).
        """

    @abstractmethod
    def settle(self, chunks: Iterable[Chunk], *, stalled: bool = False) -> bool:
        """The step is over: every decoding sequence has written one token, each chunk its tokens. Mutates.

        In a `stalled` step the decoding sequences stood still and had asked for nothing. True if what did not fit may
        fit now: slots came free by it (the source of a copy), or a waiting sequence may find something new.
        """

    @abstractmethod
    def begin_decode(self, sequence: Sequence) -> None:
        """Its known tokens are all written and it has sampled one more: it decodes from the next step on. Mutates."""

    @abstractmethod
    def land(self, sequence: Sequence) -> None:
        """The `sequence.written` tokens that it brings along (from host memory) are in its slots. Mutates.

        It has just been admitted with slots for them and one more; nothing of it was written here before. If that one
        is all that it lacks, `begin_decode` follows, and it decodes in this very step, which is not a stalled one.
        """

    @abstractmethod
    def retire(self, sequence: Sequence) -> None:
        """A decoding sequence has ended and keeps its slots for now: what it wrote is dead until released. Mutates.

        It shares none of them. Not where `caches` says so: what is released is kept there, and can be hit.
        """

    def fork(self, parent: Sequence, child: Sequence) -> int:
        """`child` goes on from where `parent` is, with the same slots: it owns them too. Mutates.

        Returns the tokens that they share for as long as both live: those in full blocks.

        The parent decodes, or is about to: all its known tokens but the last are written. Neither has asked for slots
        in the present step. The child is new, or has released all that it had; it decodes if the parent does. Where a
        slot is written that both hold, the block is copied first, by the acquire that asks for it. Only where `shares`
        says so.
        """
        raise NotImplementedError(f"{self.name} cannot share slots between sequences")

    @abstractmethod
    def release(self, sequence: Sequence) -> None:
        """Give back every slot of `sequence` (finish, preemption, cancellation, abort). Mutates.

        Raises CheckError when it owns none: a double free.
        """

    def preempt(self, sequence: Sequence) -> None:
        """Give back every slot of a running `sequence` that will be admitted again. Mutates.

        As `release`, but for those who keep more of what has ended than of what comes again.
        """
        self.release(sequence)

    def forget(self, streams: Iterable[int]) -> None:
        """No sequence with tokens of these own streams (`content.own_stream`) will come any more. Mutates.

        Changes no answer: what only they had stays cached until it is evicted, but need not be known by its content.
        """
        return

    @abstractmethod
    def leap(self, limit: int) -> Leap:
        """At most `limit` decode steps that the pool can serve with no one else asking. Pure; O(1) in the batch.

        Only while no sequence has a prompt to compute. It may end before the limit without a shortage, where somebody
        needs more than to write on (a region that grows, a page that is mapped): that step has to be acquired.
        """

    @abstractmethod
    def usage(self) -> PoolUse:
        """Where the slots are now. Pure; O(1), and for `largest_hole` O(holes)."""

    @abstractmethod
    def audit(self, live: Iterable[Sequence]) -> None:
        """Count everything again from the owners' side and raise CheckError where it differs. Pure; O(live)."""

    def extents(self) -> Seq[Extent]:
        """Every region that is taken now, in no particular order; none where only counts are kept. Pure; O(regions)."""
        return ()

    # What each sequence owns, by rule: pure functions that let the recorder tell `reserved` from `internal`.

    @abstractmethod
    def capacity(self, tokens: int) -> int:
        """Slots of this pool that one sequence takes up to hold `tokens` tokens, rounding included."""

    @abstractmethod
    def owned(self, sequence: Sequence) -> int:
        """Slots that `sequence` owns now (0 when none)."""

    @abstractmethod
    def last_growth(self, tokens: int) -> int:
        """How many tokens a sequence has written when it asks for the slots that hold its token number `tokens`."""

    def declare(self, prompt_tokens: int, output_tokens: int) -> int:
        """Tokens that a request is declared to hold in all, given its *true* output length.

        The one place where truth reaches a policy, and only one that knows by definition (`reserve` with `pow2` or
        `oracle`) answers anything but 0: nothing declared. Pure.
        """
        return 0

    def external(self, need_slots: int) -> int:
        """Slots lost to shape, for a request that needs `need_slots`. Pure.

        The free ones in holes smaller than min(need as it would be rounded up, total free), and those by which what
        is taken was rounded up beyond what was asked (`PoolUse.rounding`).
        """
        return 0
