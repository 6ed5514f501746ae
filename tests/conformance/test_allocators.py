"""Every allocator keeps every promise of the seam, and breaking any one of them is noticed and named."""

from collections import Counter

import pytest

from kvsim.errors import CheckError
from kvsim.memory.contiguous import ContiguousAllocator
from kvsim.memory.paged import PagedAllocator, PagedLeap
from kvsim.memory.reserve import ReserveAllocator
from kvsim.step import Grant, Short
from kvsim.testing import allocator_checks, check_allocator
from kvsim.testing.allocators.walk import Walk, walk

LONGEST = 64

ALLOCATORS = {
    "paged-1": lambda slots: PagedAllocator(slots, block_size=1),
    "paged-5": lambda slots: PagedAllocator(slots, block_size=5),
    "paged-16": lambda slots: PagedAllocator(slots, block_size=16),
    "paged-16-watermark": lambda slots: PagedAllocator(slots, block_size=16, watermark=0.25),
    "paged-256": lambda slots: PagedAllocator(slots, block_size=256),
    "contiguous-1": lambda slots: ContiguousAllocator(slots, chunk=1),
    "contiguous-7": lambda slots: ContiguousAllocator(slots, chunk=7),
    "contiguous-256": lambda slots: ContiguousAllocator(slots, chunk=256),
    "reserve": lambda slots: ReserveAllocator(slots, max_model_len=LONGEST),
}
CHECKS = dict(allocator_checks(longest_tokens=LONGEST))


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("make", ALLOCATORS)
def test_every_allocator_keeps_every_promise(make, check):
    CHECKS[check](ALLOCATORS[make])


class Watched(Walk):
    seen: Counter[str]

    def acquire(self, asks, *, decodes=False):
        got = super().acquire(asks, decodes=decodes)
        if isinstance(got, Short):
            self.seen["short of a batch" if decodes else f"{got.cause}, admit {asks[0].admit}"] += 1
        elif got.copied_slots:
            self.seen["copy"] += 1
        return got

    def apply(self, leap, steps, limit):
        self.seen["leap to its limit" if leap.steps == limit else "leap that the pool ends"] += 1
        self.seen["leap over several steps"] += steps > 1
        super().apply(leap, steps, limit)

    def rest(self):
        self.seen["several run"] += len(self.running) > 2


def test_the_walks_meet_shortage_preemption_copies_and_leaps():
    kinds = {}
    for name in ("paged-5", "contiguous-7", "reserve"):
        Watched.seen = kinds[name] = Counter()
        for _ in walk(Watched, ALLOCATORS[name], LONGEST):
            pass
    everywhere = {"capacity, admit True", "leap to its limit", "leap over several steps", "several run"}
    pressed = everywhere | {"short of a batch", "capacity, admit False", "leap that the pool ends"}
    fragmented = pressed | {"copy", "fragmentation, admit True", "fragmentation, admit False"}
    for name, must in (("paged-5", pressed), ("contiguous-7", fragmented), ("reserve", everywhere)):
        assert {what for what in must if kinds[name][what] >= 5} == must


# Allocators with one planted bug each.


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
        leap.steps = min(limit, leap.steps + 1)
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


class UsesBeforeSettle(PagedAllocator):
    asked = 0

    def acquire(self, asks, *, decodes=False):
        got = super().acquire(asks, decodes=decodes)
        if isinstance(got, Grant):
            self.asked += sum(ask.tokens - ask.sequence.written for ask in asks if not ask.sequence.decoding)
        return got

    def settle(self, chunks):
        self.asked = 0
        return super().settle(chunks)

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
    def settle(self, chunks):
        super().settle(chunks)
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


def test_check_allocator_is_silent_about_a_good_one_and_refuses_unknown_names():
    check_allocator(ALLOCATORS["paged-16"], longest_tokens=20, skip=["acquire_is_atomic"])
    with pytest.raises(ValueError, match="skip names acquire_is_atomik; the checks are a_fresh_pool_is_empty"):
        check_allocator(ALLOCATORS["paged-16"], skip=["acquire_is_atomik"])
