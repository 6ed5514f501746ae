"""Every check of the conformance suite finds the bugs that it is there for, and names them."""

import pytest

from kvsim.errors import CheckError
from kvsim.memory.contiguous import ContiguousAllocator
from kvsim.testing import allocator_checks, check_allocator
from tests.conformance import broken_allocators as broken

LONGEST = 64
CHECKS = dict(allocator_checks(longest_tokens=LONGEST))

PLANTED = [
    (broken.LeaksABlock, "release_gives_every_slot_back", "release does not give every slot back"),
    (broken.AcquiresOneByOne, "acquire_is_atomic", "acquire is not atomic"),
    (broken.KeepsTheRegionOfAFailedAdmission, "acquire_is_atomic", "regions of requests"),
    (broken.LeapsTooFar, "a_leap_takes_the_steps_that_the_pool_serves", "longer than what the pool can serve"),
    (broken.LeapsTooShort, "a_leap_takes_the_steps_that_the_pool_serves", "one more can be served"),
    (
        broken.LeapsBeyondItsLimit,
        "a_leap_takes_the_steps_that_the_pool_serves",
        "more than the limit|the limit must be",
    ),
    (broken.AddsUpWrongly, "a_leap_knows_the_levels_of_its_steps", "unwritten_sum"),
    (broken.PeaksTooLow, "a_leap_knows_the_levels_of_its_steps", "unwritten_peak"),
    (broken.BoundsTooLow, "a_leap_knows_the_levels_of_its_steps", "bound is"),
    (broken.MisplacesItsSteps, "a_leap_knows_the_levels_of_its_steps", "use_at"),
    (broken.LeapsWithoutTakingBlocks, "a_leap_equals_its_steps", "leap.apply differs from single steps: usage"),
    (broken.UsesBeforeSettle, "a_slot_is_used_only_after_settle", "used only after settle"),
    (broken.AcceptsADoubleFree, "a_double_free_is_refused", "a double free is accepted"),
    (broken.HidesItsHoles, "a_short_is_honest", "is not honest: the largest hole"),
    (broken.DeniesItsHoles, "slots_are_conserved_after_every_verb", "has_holes is False"),
    (broken.LosesMoreThanIsFree, "slots_are_conserved_after_every_verb", "external"),
    (broken.CopiesForFree, "a_slot_is_used_only_after_settle", "a Grant copies 0 slots"),
    (broken.SettlesInSilence, "a_slot_is_used_only_after_settle", "settle says False"),
    (broken.TakesWhatItReads, "reading_changes_nothing", "reading is not pure"),
    (broken.RemembersOtherPools, "the_same_calls_give_the_same_state", "the same calls gave another state"),
    (broken.AuditsNobody, "audit_misses_nobody", "audit is blind"),
    (broken.RoundsDown, "capacity_holds_the_tokens", "too small to hold the tokens"),
    (broken.GrowsLate, "growth_follows_the_rule", "growth breaks the rule"),
    (broken.KeepsItsWatermarkFromALoner, "an_empty_pool_admits_whoever_fits", "admitted exactly if it fits"),
    (broken.ServesAHundred, "many_small_requests_fill_the_pool", "refused although there is room"),
    (broken.GivesTooLittle, "a_grant_owns_the_tokens_asked", "a Grant for"),
    (broken.Overbooks, "slots_are_conserved_after_every_verb", "slots are not conserved by acquire"),
    (broken.ForgetsThePromptOfWhoLeaves, "a_slot_is_used_only_after_settle", "after release"),
    (broken.ForgetsTheRetired, "a_leap_knows_the_levels_of_its_steps", "unwritten_sum"),
    (broken.CopiesWithinALeap, "a_leap_takes_the_steps_that_the_pool_serves", "has a cost of its own"),
    (broken.LandsNothing, "a_slot_is_used_only_after_settle", "after land"),
    (broken.WritesWhileStalled, "a_slot_is_used_only_after_settle", "after settle|with stalled True"),
    (broken.UsesTheDead, "a_slot_is_used_only_after_settle", "after retire"),
    (broken.KeepsTheDead, "a_slot_is_used_only_after_settle", "slots count as dead"),
    (broken.RetiresNobody, "a_slot_is_used_only_after_settle", "in the decode set"),
    (broken.CountsASharedSlotTwice, "a_slot_is_used_only_after_settle", "after fork"),
    (broken.ForksByCopying, "a_fork_takes_no_room", "a fork takes room"),
    (broken.SavesTooMuch, "a_fork_takes_no_room", "shared_slots says that it saves"),
    (broken.ForksSomebodyWhoRests, "a_fork_takes_no_room", "a fork decodes: False"),
    (broken.ForksAlthoughItCannot, "a_fork_takes_no_room", "shares is False"),
    (broken.WritesWhereOthersRead, "a_block_in_common_is_copied_by_all_writers_but_the_last", "the Grant says 0"),
    (broken.CopiesForTheLastToo, "a_block_in_common_is_copied_by_all_writers_but_the_last", "the Grant says"),
    (broken.CopiesToNowhere, "a_block_in_common_is_copied_by_all_writers_but_the_last", "are copied to nowhere"),
    (broken.CopiesWithoutEnd, "a_block_in_common_is_copied_by_all_writers_but_the_last", "are moving after the step"),
    (broken.FreesWhatOthersHold, "release_gives_every_slot_back", "of which others hold"),
    (broken.FreesInSilence, "upkeep_counts_what_is_done", "allocations and"),
    (broken.CountsItsAttempts, "upkeep_counts_what_is_done", "more for Short"),
    (broken.StartsInUse, "a_fresh_pool_is_empty", "is not empty"),
]


def make_broken(kind):
    if issubclass(kind, ContiguousAllocator):
        return lambda slots: kind(slots, chunk=5)
    return lambda slots: kind(slots, block_size=4, watermark=0.1)


@pytest.mark.parametrize(("kind", "check", "message"), PLANTED)
def test_a_broken_promise_is_noticed_and_named(kind, check, message):
    with pytest.raises(CheckError, match=message):
        CHECKS[check](make_broken(kind))


@pytest.mark.parametrize(
    "kind",
    [broken.LeaksABlock, broken.AcquiresOneByOne, broken.LeapsTooFar, broken.AddsUpWrongly, broken.UsesBeforeSettle],
)
def test_check_allocator_lists_the_broken_promises(kind):
    check = next(check for planted, check, _ in PLANTED if planted is kind)
    with pytest.raises(CheckError, match=rf"of {len(CHECKS)} promises are broken:(.|\n)*  {check}: "):
        check_allocator(make_broken(kind), longest_tokens=LONGEST)


def test_every_check_has_a_planted_bug_that_it_finds():
    assert {check for _, check, _ in PLANTED} == set(CHECKS)
