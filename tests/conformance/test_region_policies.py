"""Every fit, growth, size and compaction of the region allocators keeps every promise of the seam."""

import pytest

from kvsim.errors import CheckError
from kvsim.memory.addresses import BuddySpace
from kvsim.memory.contiguous import ContiguousAllocator
from kvsim.memory.reserve import ReserveAllocator
from kvsim.testing import allocator_checks

LONGEST = 48


def contiguous(**options):
    return lambda slots: ContiguousAllocator(slots, **{"chunk": 7} | options)


def reserve(**options):
    return lambda slots: ReserveAllocator(slots, max_model_len=LONGEST, **options)


ALLOCATORS = {
    "best, chunk": contiguous(fit="best"),
    "worst, chunk": contiguous(fit="worst"),
    "next, double": contiguous(fit="next", growth="double"),
    "first, exact, rounded": contiguous(growth="exact", rounding_slots=5),
    "buddy, chunk": contiguous(fit="buddy"),
    "buddy, exact": contiguous(fit="buddy", growth="exact"),
    "first, cat": contiguous(growth="cat"),
    "buddy, cat by tensors": contiguous(fit="buddy", growth="cat", tensors=4),
    "first, chunk, compacted": contiguous(compaction="on-failure"),
    "next, cat by tensors, rounded, compacted": contiguous(
        fit="next", growth="cat", tensors=4, rounding_slots=3, compaction="on-failure"
    ),
    "reserve max, buddy": reserve(fit="buddy"),
    "reserve pow2, best": reserve(size="pow2", fit="best"),
    "reserve oracle, buddy": reserve(size="oracle", fit="buddy"),
}
CHECKS = dict(allocator_checks(longest_tokens=LONGEST))


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("make", ALLOCATORS)
def test_every_region_policy_keeps_every_promise(make, check):
    CHECKS[check](ALLOCATORS[make])


# What these policies alone could break.


class NeverMerges(BuddySpace):
    def give(self, start, length):
        order = (length - 1).bit_length()
        self._blocks[order].append(start)
        self._blocks[order].sort()
        self.free += 1 << order
        self.rounding -= (1 << order) - length


class BuddiesApart(ContiguousAllocator):
    def __init__(self, slots):
        super().__init__(slots, fit="buddy", growth="exact")
        self._space = NeverMerges(slots)


class HidesItsRounding(ContiguousAllocator):
    def __init__(self, slots):
        super().__init__(slots, fit="buddy", growth="exact")

    def usage(self):
        return super().usage()._replace(rounding=0)


class CountsRoundingAsFree(HidesItsRounding):
    def usage(self):
        use = ContiguousAllocator.usage(self)
        return use._replace(free=use.free + use.rounding, rounding=0)


class LosesOnlyHoles(ContiguousAllocator):
    def __init__(self, slots):
        super().__init__(slots, fit="buddy", growth="exact")

    def external(self, need_slots):
        return super().external(need_slots) - self._space.rounding


class PromisesTheWholePool(ContiguousAllocator):
    def __init__(self, slots):
        super().__init__(slots, growth="exact", rounding_slots=20)

    @property
    def most_slots(self):
        return self.pool_slots


class ConcatenatesForFree(ContiguousAllocator):
    def __init__(self, slots):
        super().__init__(slots, growth="cat", tensors=2)

    def acquire(self, asks, *, decodes=False):
        got = super().acquire(asks, decodes=decodes)
        return got._replace(copied_slots=0) if hasattr(got, "copied_slots") else got


@pytest.mark.parametrize(
    ("kind", "check", "message"),
    [
        (BuddiesApart, "release_gives_every_slot_back", "everyone has gone"),
        (HidesItsRounding, "slots_are_conserved_after_every_verb", "slots are not conserved"),
        (CountsRoundingAsFree, "a_short_is_honest", "is not honest"),
        (LosesOnlyHoles, "slots_are_conserved_after_every_verb", "of rounding"),
        (PromisesTheWholePool, "an_empty_pool_admits_whoever_fits", "admitted exactly if it fits"),
        (ConcatenatesForFree, "a_slot_is_used_only_after_settle", "a Grant copies 0 slots"),
    ],
)
def test_a_broken_promise_is_noticed_and_named(kind, check, message):
    with pytest.raises(CheckError, match=message):
        CHECKS[check](kind)
