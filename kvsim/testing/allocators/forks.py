"""Slots in common: what a fork takes, who copies what before writing, and what sharing is said to save."""

from collections.abc import Sequence as Seq

from kvsim.request import Sequence
from kvsim.step import Ask, Chunk, Grant, Short
from kvsim.testing.allocators.walk import MakeAllocator, Walk, walk
from kvsim.testing.promises import promise


class _Forking(Walk):
    def fork(self, parent: Sequence, child: Sequence) -> int:
        pool, written = self.allocator, self.written[parent.id]
        before, shared, decodes = pool.usage(), pool.shared_slots, pool.decodes.count
        common = super().fork(parent, child)
        told = f"{pool.name}: a fork"
        promise(pool.usage() == before, f"{told} takes room: {before} becomes {pool.usage()}")
        owned = pool.owned(child)
        promise(owned == pool.owned(parent), f"{told} owns {owned} slots, its parent {pool.owned(parent)}")
        saved = pool.shared_slots - shared
        promise(saved == owned, f"{told} owns {owned} slots, but shared_slots says that it saves {saved}")
        promise(0 <= common <= written, f"{told} of {written} written tokens has {common} in common")
        promise(
            child.written == written and child.tokens == written + 1,
            f"{told} of {written} written tokens has {child.written}, and knows {child.tokens}",
        )
        joined = pool.decodes.count - decodes
        promise(
            child.decoding == parent.decoding and joined == parent.decoding,
            f"{told} decodes: {child.decoding}, its parent: {parent.decoding}; {joined} more are counted",
        )
        return common


def a_fork_takes_no_room(make: MakeAllocator, longest: int) -> None:
    """It owns what its parent owns and goes on from where that is. Where nothing can be shared, a fork is refused."""
    pool = make(1 << 20)
    if pool.shares:
        for walker in walk(_Forking, make, longest):
            _saved(walker)
        return
    parent, child = (Sequence(number, 1, None, tokens=1) for number in (1, 2))
    pool.acquire((Ask(parent, 1, True, 1, True),))
    pool.settle([Chunk(parent, 1, 0)])
    parent.tokens += 1
    try:
        pool.fork(parent, child)
    except NotImplementedError:
        promise(not pool.owned(child) and not pool.shared_slots, f"{pool.name}: a refused fork owns slots")
    else:
        promise(False, f"{pool.name}: shares is False, but a fork is accepted")


def _saved(walker: Walk) -> None:
    pool, use = walker.allocator, walker.allocator.usage()
    tables = sum(pool.owned(sequence) for sequence in walker.live)
    taken = pool.pool_slots - use.free - use.rounding
    promise(
        tables - pool.shared_slots == taken,
        f"{pool.name}: requests own {tables} slots and take {taken}, but shared_slots is {pool.shared_slots}",
    )


class _Copying(Walk):
    def acquire(self, asks: Seq[Ask], *, decodes: bool = False) -> Grant | Short:
        pool = self.allocator
        before, owned = pool.usage(), [pool.owned(sequence) for sequence in self.running]
        got = super().acquire(asks, decodes=decodes)
        if isinstance(got, Grant) and pool.shares:
            told = f"{pool.name}: a block that others hold is copied by all its writers but the last"
            promise(
                got.copied_slots == self.copies,
                f"{told}: {self.copies} written slots are to be copied, the Grant says {got.copied_slots}",
            )
            use = pool.usage()
            promise(
                use.moving == self.shares.moving and use.used == before.used,
                f"{told}: {self.shares.moving} are on the way beside {before.used} used ones, but the usage is {use}",
            )
            if self.copies and not asks:
                more = sum(pool.owned(s) for s in self.running) - sum(owned)
                taken = before.free - use.free
                promise(taken > more, f"{told}: {self.copies} slots are copied to nowhere: {taken} are taken")
        return got

    def settle(self, chunks: list[Chunk], *, stalled: bool = False) -> bool:
        came_free = super().settle(chunks, stalled=stalled)
        use = self.allocator.usage()
        promise(not use.moving, f"{self.allocator.name}: {use.moving} slots are moving after the step")
        return came_free


def a_block_in_common_is_copied_by_all_writers_but_the_last(make: MakeAllocator, longest: int) -> None:
    """Exactly when a partly filled block that others hold is written: the copy is `moving` until the step is over."""
    for _ in walk(_Copying, make, longest):
        pass
