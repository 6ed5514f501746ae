"""Where the slots are: conserved, used only once written, all given back, and the same whoever reads."""

from collections.abc import Sequence as Seq

from kvsim.errors import CheckError
from kvsim.request import Sequence
from kvsim.step import Ask, Chunk, Grant, PoolUse, Short
from kvsim.testing.allocators.walk import MakeAllocator, Walk, side_by_side, walk
from kvsim.testing.promises import promise, same


class _Conserving(Walk):
    def acquire(self, asks: Seq[Ask], *, decodes: bool = False) -> Grant | Short:
        got = super().acquire(asks, decodes=decodes)
        self._count("acquire")
        return got

    def settle(self, chunks: list[Chunk], *, stalled: bool = False) -> bool:
        came_free = super().settle(chunks, stalled=stalled)
        self._count("settle")
        return came_free

    def begin_decode(self, sequence: Sequence) -> None:
        super().begin_decode(sequence)
        self._count("begin_decode")

    def fork(self, parent: Sequence, child: Sequence) -> int:
        common = super().fork(parent, child)
        self._count("fork")
        return common

    def land(self, sequence: Sequence) -> None:
        super().land(sequence)
        self._count("land")

    def retire(self, sequence: Sequence) -> None:
        super().retire(sequence)
        self._count("retire")

    def release(self, sequence: Sequence, *, comes_again: bool = False) -> None:
        super().release(sequence, comes_again=comes_again)
        self._count("release")

    def _count(self, verb: str) -> None:
        pool, use = self.allocator, self.allocator.usage()
        promise(
            min(use) >= 0 and sum(use) - use.largest_hole == pool.pool_slots,
            f"{pool.name}: slots are not conserved by {verb}: {use} in a pool of {pool.pool_slots}",
        )
        promise(
            bool(use.free) == bool(use.largest_hole) and use.largest_hole <= use.free,
            f"{pool.name}: after {verb} the largest hole has {use.largest_hole} of {use.free} free slots",
        )
        promise(
            pool.has_holes or use.largest_hole == use.free,
            f"{pool.name}: has_holes is False, but free slots lie in holes: {use}",
        )
        before = 0
        for need in (1, 2, self.longest // 2, self.longest, 2 * self.longest, pool.pool_slots):
            lost = pool.external(need)
            promise(
                use.rounding <= lost <= use.free + use.rounding,
                f"{pool.name}: external({need}) is {lost} of {use.free} free slots and {use.rounding} of rounding",
            )
            promise(pool.has_holes or not lost, f"{pool.name}: has_holes is False, external({need}) is {lost}")
            if need >= self.longest // 2:
                promise(lost >= before, f"{pool.name}: external({need}) is {lost}, less than for a smaller need")
                before = lost


def slots_are_conserved_after_every_verb(make: MakeAllocator, longest: int) -> None:
    """The classes of the accounting identity add up to the pool, and holes stay within what is free."""
    for walker in walk(_Conserving, make, longest):
        walker.allocator.audit(walker.live)


class _Using(Walk):
    def acquire(self, asks: Seq[Ask], *, decodes: bool = False) -> Grant | Short:
        moving = self.allocator.usage().moving
        written = sum(ask.sequence.written for ask in asks)
        got = super().acquire(asks, decodes=decodes)
        # What it finds of itself is written from now on.
        self._compare("acquire", sum(ask.sequence.written for ask in asks) - written)
        if isinstance(got, Grant):
            moved = self.allocator.usage().moving - moving
            promise(
                0 <= moved <= got.copied_slots,
                f"{self.allocator.name}: a Grant copies {got.copied_slots} slots, {moved} more are moving",
            )
        return got

    def settle(self, chunks: list[Chunk], *, stalled: bool = False) -> bool:
        free, clock = self.allocator.usage().free, self.allocator.decodes.clock
        came_free = super().settle(chunks, stalled=stalled)
        self._compare("settle")
        freed = self.allocator.usage().free - free
        # What is new in a cache may help those that wait as well.
        right = came_free == (freed > 0) or (came_free and self.allocator.caches)
        promise(right, f"{self.allocator.name}: settle says {came_free}, {freed} slots came free")
        passed = self.allocator.decodes.clock - clock
        promise(
            passed == (not stalled),
            f"{self.allocator.name}: settle moves the decode clock by {passed} in a step with stalled {stalled}",
        )
        return came_free

    def begin_decode(self, sequence: Sequence) -> None:
        super().begin_decode(sequence)
        promise(sequence.decoding, f"{self.allocator.name}: begin_decode leaves the request out of the decode set")
        self._compare("begin_decode")

    def fork(self, parent: Sequence, child: Sequence) -> int:
        common = super().fork(parent, child)
        self._compare("fork")
        return common

    def land(self, sequence: Sequence) -> None:
        super().land(sequence)
        self._compare("land")

    def retire(self, sequence: Sequence) -> None:
        super().retire(sequence)
        promise(not sequence.decoding, f"{self.allocator.name}: retire leaves the request in the decode set")
        self._compare("retire")

    def release(self, sequence: Sequence, *, comes_again: bool = False) -> None:
        super().release(sequence, comes_again=comes_again)
        self._compare("release")

    def _compare(self, verb: str, found: int = 0) -> None:
        pool, use = self.allocator, self.allocator.usage()
        dead = sum(self.written[s.id] for s in self.retired)
        used = self.shares.distinct(self.written) + found - dead
        if not pool.keeps:
            used = dead = 0
        promise(
            use.used == used,
            f"{pool.name}: a slot is used only after settle, and once: after {verb} {use.used} slots count as used, "
            f"{used} are written",
        )
        promise(use.dead == dead, f"{pool.name}: after {verb} {use.dead} slots count as dead, {dead} have no more use")
        for sequence in self.live:
            ours, theirs = self.written[sequence.id], pool.decodes.written_of(sequence)
            promise(
                ours == theirs,
                f"{pool.name}: after {verb} a request has {theirs} written tokens instead of {ours}",
            )
        decoding = sum(sequence.decoding for sequence in self.running)
        promise(
            pool.decodes.count == decoding,
            f"{pool.name}: the decode set counts {pool.decodes.count} of {decoding} sequences",
        )


def a_slot_is_used_only_after_settle(make: MakeAllocator, longest: int) -> None:
    """What those that run have written is `used`, what those that have ended is `dead`; settle tells what came free.

    A slot that several hold counts once, what moves is copied, and in a stalled step only chunks are written.
    """
    for _ in walk(_Using, make, longest):
        pass


def _to_be_had(use: PoolUse) -> tuple[int, int, int]:
    """Slots that nobody owns."""
    return use.free, use.cached, use.rounding


class _Releasing(Walk):
    def release(self, sequence: Sequence, *, comes_again: bool = False) -> None:
        pool = self.allocator
        owned, before, written = pool.owned(sequence), pool.usage(), self.written[sequence.id]
        decoding, shared = sequence.decoding, pool.shared_slots
        super().release(sequence, comes_again=comes_again)
        use = pool.usage()
        back = sum(now - then for now, then in zip(_to_be_had(use), _to_be_had(before), strict=True))
        kept = shared - pool.shared_slots
        told = f"{pool.name}: release does not give every slot back"
        promise(
            back == owned - kept,
            f"{told}: the request owned {owned} slots, of which others hold {kept}, and {back} came free",
        )
        promise(pool.owned(sequence) == 0, f"{told}: the request owns {pool.owned(sequence)} afterwards")
        promise(
            not sequence.decoding and sequence.written == written and (not decoding or sequence.tokens > written),
            f"{pool.name}: release leaves the request with {sequence.written} written tokens of {written} "
            f"and decoding {sequence.decoding}",
        )


def release_gives_every_slot_back(make: MakeAllocator, longest: int) -> None:
    """A release frees what was owned, and when all have gone the pool is whole again; a double free is refused."""
    for walker in walk(_Releasing, make, longest):
        pool = walker.allocator
        if walker.random.random() < 0.2:
            while walker.live:
                walker.release(walker.random.choice(walker.live))
            use = pool.usage()
            promise(
                use.free + use.cached == pool.pool_slots and use.largest_hole + use.cached >= pool.most_slots,
                f"{pool.name}: release does not give every slot back: everyone has gone and the usage is {use}",
            )
            pool.audit([])


class _Doubling(Walk):
    """Releases everything twice."""

    def release(self, sequence: Sequence, *, comes_again: bool = False) -> None:
        pool = self.allocator
        super().release(sequence, comes_again=comes_again)
        for once_more in (sequence, Sequence(-1, 1, None, tokens=1)):
            before = pool.usage(), pool.decodes.count, pool.decodes.written
            try:
                pool.release(once_more)
            except CheckError:
                after = pool.usage(), pool.decodes.count, pool.decodes.written
                promise(after == before, f"{pool.name}: a refused release changes {before} to {after}")
            else:
                promise(False, f"{pool.name}: a double free is accepted: CheckError expected")


def a_double_free_is_refused(make: MakeAllocator, longest: int) -> None:
    """Releasing what owns nothing raises CheckError and changes nothing, now or later."""
    for plain, tried in side_by_side(Walk, _Doubling, make, longest):
        name = plain.allocator.name
        same(tried.state(), plain.state(), f"{name}: it went on differently after a refused double free")


def audit_misses_nobody(make: MakeAllocator, longest: int) -> None:
    """It passes at the end of every step, also with strangers that own nothing, and sees each owner that is missing."""
    for walker in walk(Walk, make, longest):
        pool, live = walker.allocator, walker.live
        pool.audit([*live, walker.new_sequence(1)])
        for missing in live:
            try:
                pool.audit([s for s in live if s is not missing])
            except CheckError:
                continue
            promise(False, f"{pool.name}: audit is blind: it misses the slots of a request that is not live (a leak)")


class _Reading(Walk):
    """Reads everything there is, all the time."""

    def rest(self) -> None:
        self.allocator.audit(self.live)
        same(self.state(), self.state(), f"{self.allocator.name}: reading is not pure: read twice in a row")

    def acquire(self, asks: Seq[Ask], *, decodes: bool = False) -> Grant | Short:
        self._read()
        got = super().acquire(asks, decodes=decodes)
        self._read()
        return got

    def _read(self) -> None:
        for sequence in self.live:
            self.allocator.owned(sequence)
        self.allocator.usage()
        self.allocator.external(self.longest)
        self.allocator.capacity(self.longest)


def reading_changes_nothing(make: MakeAllocator, longest: int) -> None:
    """usage, owned, external, capacity, audit and leap are pure: whoever reads all the time fares like who does not."""
    for plain, read in side_by_side(Walk, _Reading, make, longest):
        told = f"{plain.allocator.name}: reading is not pure: it changed what came later"
        same(read.progress(), plain.progress(), told)


def the_same_calls_give_the_same_state(make: MakeAllocator, longest: int) -> None:
    """No chance, no clock, no state shared between two pools."""
    for one, other in side_by_side(Walk, Walk, make, longest):
        same(other.state(), one.state(), f"{one.allocator.name}: the same calls gave another state")
