"""Allocators with one planted bug each."""

from kvsim.memory.contiguous import ContiguousAllocator
from kvsim.memory.paged import PagedAllocator, PagedLeap
from kvsim.step import Grant, Short


class LeaksABlock(PagedAllocator):
    def release(self, sequence):
        super().release(sequence)
        self.free_blocks -= 1
        self.references += 1


class AcquiresOneByOne(PagedAllocator):
    def acquire(self, asks, *, decodes=False):
        got = super().acquire((), decodes=decodes)
        for ask in asks:
            if isinstance(got, Short):
                break
            got = super().acquire((ask,))
        return got


class KeepsTheRegionOfAFailedAdmission(ContiguousAllocator):
    def acquire(self, asks, *, decodes=False):
        got = super().acquire(asks, decodes=decodes)
        if isinstance(got, Short) and len(asks) > 1:
            self._regions[asks[-1].sequence.id] = (0, 0)
        return got


class LeapsTooFar(PagedAllocator):
    def leap(self, limit):
        leap = super().leap(limit)
        leap.steps = min(limit, leap.steps + (leap.steps > 0))
        return leap


class LeapsTooShort(PagedAllocator):
    def leap(self, limit):
        leap = super().leap(limit)
        leap.steps -= 1 < leap.steps < limit
        return leap


class LeapsBeyondItsLimit(PagedAllocator):
    def leap(self, limit):
        return super().leap(2 * limit)


class OwnLeap(PagedAllocator):
    kind = PagedLeap

    def leap(self, limit):
        return self.kind(self, limit)


class AddsUpWrongly(OwnLeap):
    class kind(PagedLeap):  # noqa: N801
        def unwritten_sum(self, steps, a, b):
            return super().unwritten_sum(steps, a, b) + b


class PeaksTooLow(OwnLeap):
    class kind(PagedLeap):  # noqa: N801
        def unwritten_peak(self, first, last):
            return super().unwritten_peak(first, last) - (last > first + 2)


class BoundsTooLow(OwnLeap):
    class kind(PagedLeap):  # noqa: N801
        def __init__(self, allocator, limit):
            super().__init__(allocator, limit)
            self.bound = allocator.decodes.count * (allocator.block_size - 1)


class MisplacesItsSteps(OwnLeap):
    class kind(PagedLeap):  # noqa: N801
        def use_at(self, step):
            return super().use_at(max(0, step - 1))


class LeapsWithoutTakingBlocks(OwnLeap):
    class kind(PagedLeap):  # noqa: N801
        def apply(self, steps):
            self._allocator.decodes.advance(steps)


class ForgetsTheRetired(OwnLeap):
    class kind(PagedLeap):  # noqa: N801
        def __init__(self, allocator, limit):
            super().__init__(allocator, limit)
            self._others = 0


class CopiesWithinALeap(PagedAllocator):
    def leap(self, limit):
        due, self.sharing.copies_due = self.sharing.copies_due, 0
        leap = super().leap(limit)
        self.sharing.copies_due = due
        return leap


class UsesBeforeSettle(PagedAllocator):
    asked = 0

    def acquire(self, asks, *, decodes=False):
        got = super().acquire(asks, decodes=decodes)
        if isinstance(got, Grant):
            self.asked += sum(ask.tokens - ask.sequence.written for ask in asks if not ask.sequence.decoding)
        return got

    def settle(self, chunks, *, stalled=False):
        self.asked = 0
        return super().settle(chunks, stalled=stalled)

    def usage(self):
        use = super().usage()
        return use._replace(used=use.used + self.asked, unwritten=use.unwritten - self.asked)


class AcceptsADoubleFree(PagedAllocator):
    def release(self, sequence):
        if self.owned(sequence):
            super().release(sequence)


class HidesItsHoles(ContiguousAllocator):
    def acquire(self, asks, *, decodes=False):
        got = super().acquire(asks, decodes=decodes)
        return got._replace(largest_hole_slots=got.free_slots) if isinstance(got, Short) else got


class DeniesItsHoles(ContiguousAllocator):
    has_holes = False


class LosesMoreThanIsFree(ContiguousAllocator):
    def external(self, need_slots):
        return super().external(need_slots) + 1


class CopiesForFree(ContiguousAllocator):
    def acquire(self, asks, *, decodes=False):
        got = super().acquire(asks, decodes=decodes)
        return Grant() if isinstance(got, Grant) else got


class SettlesInSilence(ContiguousAllocator):
    def settle(self, chunks, *, stalled=False):
        super().settle(chunks, stalled=stalled)
        return False


class TakesWhatItReads(PagedAllocator):
    def leap(self, limit):
        self.watermark_blocks = self.watermark_blocks % 3 + 1
        return super().leap(limit)


class RemembersOtherPools(PagedAllocator):
    calls = 0

    def acquire(self, asks, *, decodes=False):
        type(self).calls += 1
        if type(self).calls % 7 == 0 and asks and asks[0].admit and not asks[0].alone:
            return Short("capacity", self.pool_slots + 1, self.usage().free, self.usage().free)
        return super().acquire(asks, decodes=decodes)


class AuditsNobody(PagedAllocator):
    def audit(self, live):
        pass


class RoundsDown(PagedAllocator):
    def capacity(self, tokens):
        return tokens // self.block_size * self.block_size


class GrowsLate(PagedAllocator):
    def last_growth(self, tokens):
        return tokens // self.block_size * self.block_size if tokens % self.block_size else tokens - 1


class KeepsItsWatermarkFromALoner(PagedAllocator):
    def acquire(self, asks, *, decodes=False):
        return super().acquire([ask._replace(alone=False) for ask in asks], decodes=decodes)


class ServesAHundred(PagedAllocator):
    def acquire(self, asks, *, decodes=False):
        if len(self._tables) + self.decodes.count >= 100 and any(ask.admit for ask in asks):
            return self._short(1)
        return super().acquire(asks, decodes=decodes)


class GivesTooLittle(PagedAllocator):
    def acquire(self, asks, *, decodes=False):
        return super().acquire([ask._replace(tokens=max(1, ask.tokens - 1)) for ask in asks], decodes=decodes)


class Overbooks(PagedAllocator):
    def acquire(self, asks, *, decodes=False):
        self.free_blocks += 3
        got = super().acquire(asks, decodes=decodes)
        self.free_blocks -= 3
        return got


class ForgetsThePromptOfWhoLeaves(PagedAllocator):
    def release(self, sequence):
        prefill = not sequence.decoding
        super().release(sequence)
        if prefill:
            self._prefill_written += sequence.written


class LandsNothing(PagedAllocator):
    def land(self, sequence):
        pass


class WritesWhileStalled(PagedAllocator):
    def settle(self, chunks, *, stalled=False):
        return super().settle(chunks)


class UsesTheDead(PagedAllocator):
    def usage(self):
        use = super().usage()
        return use._replace(used=use.used + use.dead, dead=0)


class KeepsTheDead(PagedAllocator):
    def release(self, sequence):
        dead = self.dead
        super().release(sequence)
        self.dead = dead


class RetiresNobody(PagedAllocator):
    def retire(self, sequence):
        pass


class CountsASharedSlotTwice(PagedAllocator):
    def usage(self):
        use = super().usage()
        return use._replace(used=use.used + self.sharing.slots, unwritten=use.unwritten - self.sharing.slots)


class ForksByCopying(PagedAllocator):
    def fork(self, parent, child):
        common = super().fork(parent, child)
        self.free_blocks -= 1
        return common


class SavesTooMuch(PagedAllocator):
    @property
    def shared_slots(self):
        return 2 * super().shared_slots


class ForksSomebodyWhoRests(PagedAllocator):
    def fork(self, parent, child):
        common = super().fork(parent, child)
        if child.decoding:
            self._leave(child)
            self._tables[child.id] = self._table(parent)
            self._prefill_written += child.written
        return common


class ForksAlthoughItCannot(ContiguousAllocator):
    def fork(self, parent, child):
        return 0


class WritesWhereOthersRead(PagedAllocator):
    def fork(self, parent, child):
        common = super().fork(parent, child)
        self.sharing.last.clear()
        self.sharing.copies_due = 0
        return common


class CopiesForTheLastToo(PagedAllocator):
    def acquire(self, asks, *, decodes=False):
        got = super().acquire(asks, decodes=decodes)
        return got._replace(copied_slots=got.copied_slots + 1) if isinstance(got, Grant) and got.copied_slots else got


class CopiesToNowhere(PagedAllocator):
    def acquire(self, asks, *, decodes=False):
        due = self.sharing.copies_due if decodes else 0
        got = super().acquire(asks, decodes=decodes)
        self.free_blocks += due if isinstance(got, Grant) else 0
        return got


class CopiesWithoutEnd(PagedAllocator):
    def settle(self, chunks, *, stalled=False):
        moving = self.sharing.moving
        came_free = super().settle(chunks, stalled=stalled)
        self.sharing.moving = moving
        return came_free


class FreesWhatOthersHold(PagedAllocator):
    def release(self, sequence):
        held = self.sharing.blocks
        super().release(sequence)
        self.free_blocks += held - self.sharing.blocks


class FreesInSilence(PagedAllocator):
    def release(self, sequence):
        super().release(sequence)
        self.upkeep.frees -= 1


class CountsItsAttempts(PagedAllocator):
    def acquire(self, asks, *, decodes=False):
        got = super().acquire(asks, decodes=decodes)
        self.upkeep.allocations += isinstance(got, Short)
        return got


class StartsInUse(PagedAllocator):
    def __init__(self, slots, **options):
        super().__init__(slots, **options)
        self.free_blocks -= 1
        self.references += 1
