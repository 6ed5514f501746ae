"""Allocators with one planted bug each: every broken promise is noticed and named."""

import pytest

from kvsim.errors import CheckError
from kvsim.memory.contiguous import ContiguousAllocator
from kvsim.memory.paged import PagedAllocator, PagedLeap
from kvsim.step import Grant, Short
from kvsim.testing import allocator_checks, check_allocator

LONGEST = 64
CHECKS = dict(allocator_checks(longest_tokens=LONGEST))


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
            self._retired = 0


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
        self.sharing._last.clear()
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
        self.upkeep.allocations += 1
        return super().acquire(asks, decodes=decodes)


class StartsInUse(PagedAllocator):
    def __init__(self, slots, **options):
        super().__init__(slots, **options)
        self.free_blocks -= 1
        self.references += 1


PLANTED = [
    (LeaksABlock, "release_gives_every_slot_back", "release does not give every slot back"),
    (AcquiresOneByOne, "acquire_is_atomic", "acquire is not atomic"),
    (KeepsTheRegionOfAFailedAdmission, "acquire_is_atomic", "regions of requests"),
    (LeapsTooFar, "a_leap_takes_the_steps_that_the_pool_serves", "longer than what the pool can serve"),
    (LeapsTooShort, "a_leap_takes_the_steps_that_the_pool_serves", "one more can be served"),
    (LeapsBeyondItsLimit, "a_leap_takes_the_steps_that_the_pool_serves", "more than the limit|the limit must be"),
    (AddsUpWrongly, "a_leap_knows_the_levels_of_its_steps", "unwritten_sum"),
    (PeaksTooLow, "a_leap_knows_the_levels_of_its_steps", "unwritten_peak"),
    (BoundsTooLow, "a_leap_knows_the_levels_of_its_steps", "bound is"),
    (MisplacesItsSteps, "a_leap_knows_the_levels_of_its_steps", "use_at"),
    (LeapsWithoutTakingBlocks, "a_leap_equals_its_steps", "leap.apply differs from single steps: usage"),
    (UsesBeforeSettle, "a_slot_is_used_only_after_settle", "used only after settle"),
    (AcceptsADoubleFree, "a_double_free_is_refused", "a double free is accepted"),
    (HidesItsHoles, "a_short_is_honest", "is not honest: the largest hole"),
    (DeniesItsHoles, "slots_are_conserved_after_every_verb", "has_holes is False"),
    (LosesMoreThanIsFree, "slots_are_conserved_after_every_verb", "external"),
    (CopiesForFree, "a_slot_is_used_only_after_settle", "a Grant copies 0 slots"),
    (SettlesInSilence, "a_slot_is_used_only_after_settle", "settle says False"),
    (TakesWhatItReads, "reading_changes_nothing", "reading is not pure"),
    (RemembersOtherPools, "the_same_calls_give_the_same_state", "the same calls gave another state"),
    (AuditsNobody, "audit_misses_nobody", "audit is blind"),
    (RoundsDown, "capacity_holds_the_tokens", "too small to hold the tokens"),
    (GrowsLate, "growth_follows_the_rule", "growth breaks the rule"),
    (KeepsItsWatermarkFromALoner, "an_empty_pool_admits_whoever_fits", "admitted exactly if it fits"),
    (ServesAHundred, "many_small_requests_fill_the_pool", "refused although there is room"),
    (GivesTooLittle, "a_grant_owns_the_tokens_asked", "a Grant for"),
    (Overbooks, "slots_are_conserved_after_every_verb", "slots are not conserved by acquire"),
    (ForgetsThePromptOfWhoLeaves, "a_slot_is_used_only_after_settle", "after release"),
    (ForgetsTheRetired, "a_leap_knows_the_levels_of_its_steps", "unwritten_sum"),
    (CopiesWithinALeap, "a_leap_takes_the_steps_that_the_pool_serves", "has a cost of its own"),
    (LandsNothing, "a_slot_is_used_only_after_settle", "after land"),
    (WritesWhileStalled, "a_slot_is_used_only_after_settle", "after settle|with stalled True"),
    (UsesTheDead, "a_slot_is_used_only_after_settle", "after retire"),
    (KeepsTheDead, "a_slot_is_used_only_after_settle", "slots count as dead"),
    (RetiresNobody, "a_slot_is_used_only_after_settle", "in the decode set"),
    (CountsASharedSlotTwice, "a_slot_is_used_only_after_settle", "after fork"),
    (ForksByCopying, "a_fork_takes_no_room", "a fork takes room"),
    (SavesTooMuch, "a_fork_takes_no_room", "shared_slots says that it saves"),
    (ForksSomebodyWhoRests, "a_fork_takes_no_room", "a fork decodes: False"),
    (ForksAlthoughItCannot, "a_fork_takes_no_room", "shares is False"),
    (WritesWhereOthersRead, "a_block_in_common_is_copied_by_all_writers_but_the_last", "the Grant says 0"),
    (CopiesForTheLastToo, "a_block_in_common_is_copied_by_all_writers_but_the_last", "the Grant says"),
    (CopiesToNowhere, "a_block_in_common_is_copied_by_all_writers_but_the_last", "are copied to nowhere"),
    (CopiesWithoutEnd, "a_block_in_common_is_copied_by_all_writers_but_the_last", "are moving after the step"),
    (FreesWhatOthersHold, "release_gives_every_slot_back", "of which others hold"),
    (FreesInSilence, "upkeep_counts_what_is_done", "allocations and"),
    (CountsItsAttempts, "upkeep_counts_what_is_done", "more for Short"),
    (StartsInUse, "a_fresh_pool_is_empty", "is not empty"),
]


def make_broken(kind):
    if issubclass(kind, ContiguousAllocator):
        return lambda slots: kind(slots, chunk=5)
    return lambda slots: kind(slots, block_size=4, watermark=0.1)


@pytest.mark.parametrize(("kind", "check", "message"), PLANTED)
def test_a_broken_promise_is_noticed_and_named(kind, check, message):
    with pytest.raises(CheckError, match=message):
        CHECKS[check](make_broken(kind))


@pytest.mark.parametrize("kind", [LeaksABlock, AcquiresOneByOne, LeapsTooFar, AddsUpWrongly, UsesBeforeSettle])
def test_check_allocator_lists_the_broken_promises(kind):
    check = next(check for broken, check, _ in PLANTED if broken is kind)
    with pytest.raises(CheckError, match=rf"of {len(CHECKS)} promises are broken:(.|\n)*  {check}: "):
        check_allocator(make_broken(kind), longest_tokens=LONGEST)


def test_every_check_has_a_planted_bug_that_it_finds():
    assert {check for _, check, _ in PLANTED} == set(CHECKS)
