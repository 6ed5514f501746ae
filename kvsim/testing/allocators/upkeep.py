"""What an allocator counts of its own work."""

from collections.abc import Sequence as Seq
from dataclasses import asdict

from kvsim.step import Ask, Grant, Short
from kvsim.testing.allocators.walk import MakeAllocator, Walk, walk
from kvsim.testing.promises import promise


class _Working(Walk):
    def acquire(self, asks: Seq[Ask], *, decodes: bool = False) -> Grant | Short:
        pool = self.allocator
        before = asdict(pool.upkeep)
        got = super().acquire(asks, decodes=decodes)
        more = {name: count - before[name] for name, count in asdict(pool.upkeep).items()}
        told = f"{pool.name}: upkeep counts {more} more for {got}"
        if isinstance(got, Short):
            promise(not any(more.values()), f"{told}, which changes nothing")
        else:
            promise(min(more.values()) >= 0, told)
            promise(bool(more["copies"]) == bool(got.copied_slots), told)
            promise(more["mapped_pages"] >= got.mapped_pages, told)
        return got

    def rest(self) -> None:
        pool = self.allocator
        upkeep = pool.upkeep
        kept = upkeep.allocations - upkeep.frees
        owning = any(pool.owned(sequence) for sequence in self.live)
        promise(
            kept > 0 if owning else kept == 0,
            f"{pool.name}: upkeep counts {upkeep.allocations} allocations and {upkeep.frees} frees, and "
            f"{len(self.live) if owning else 0} requests own something",
        )
        promise(bool(upkeep.table_bytes) >= owning, f"{pool.name}: what is owned needs a table, and upkeep counts none")


def upkeep_counts_what_is_done(make: MakeAllocator, longest: int) -> None:
    """A Short counts nothing, a copy and a mapped page count; whoever has gone has freed what was allocated."""
    for walker in walk(_Working, make, longest):
        if walker.chance(0.2):
            while walker.live:
                walker.release(walker.random.choice(walker.live))
            walker.rest()
