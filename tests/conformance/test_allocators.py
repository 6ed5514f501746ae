"""Every allocator keeps every promise of the seam."""

from collections import Counter

import pytest

from kvsim.memory.contiguous import ContiguousAllocator
from kvsim.memory.no_cache import NoCacheAllocator
from kvsim.memory.paged import PagedAllocator
from kvsim.memory.prefix import Hit, PrefixAllocator
from kvsim.memory.radix.allocator import RadixAllocator
from kvsim.memory.reserve import ReserveAllocator
from kvsim.step import Short
from kvsim.testing import allocator_checks, check_allocator
from kvsim.testing.allocators.walk import Walk, walk

LONGEST = 64


class FindsNothing(PrefixAllocator):
    """Stores what is full, keeps it and evicts it, and never hits: the suite counts every token as computed."""

    def __init__(self, pool_slots, **options):
        super().__init__(pool_slots, **options)
        self.holdings.hit = lambda holding, known_tokens: Hit(0, ([],), 0)


ALLOCATORS = {
    "paged-1": lambda slots: PagedAllocator(slots, block_size=1),
    "paged-5": lambda slots: PagedAllocator(slots, block_size=5),
    "paged-16": lambda slots: PagedAllocator(slots, block_size=16),
    "paged-16-watermark": lambda slots: PagedAllocator(slots, block_size=16, watermark=0.25),
    "paged-256": lambda slots: PagedAllocator(slots, block_size=256),
    # The requests of the suite have no content, so that whoever was preempted finds itself again, and nobody else.
    "prefix-1": lambda slots: PrefixAllocator(slots, block_size=1),
    "prefix-16": lambda slots: PrefixAllocator(slots, block_size=16, watermark=0.25),
    "radix-1": lambda slots: RadixAllocator(slots),
    "radix-5-slru": lambda slots: RadixAllocator(slots, page_size=5, eviction="slru"),
    "radix-16": lambda slots: RadixAllocator(slots, page_size=16),
    "prefix-1-uncached": lambda slots: PrefixAllocator(slots, block_size=1, caching=False),
    "prefix-16-uncached": lambda slots: PrefixAllocator(slots, block_size=16, watermark=0.25, caching=False),
    "radix-1-uncached": lambda slots: RadixAllocator(slots, caching=False),
    "radix-16-uncached": lambda slots: RadixAllocator(slots, page_size=16, caching=False),
    "contiguous-1": lambda slots: ContiguousAllocator(slots, chunk=1),
    "contiguous-7": lambda slots: ContiguousAllocator(slots, chunk=7),
    "contiguous-256": lambda slots: ContiguousAllocator(slots, chunk=256),
    "reserve": lambda slots: ReserveAllocator(slots, max_model_len=LONGEST),
    "no-cache": lambda slots: NoCacheAllocator(),
}
CACHING = {
    "prefix-1": lambda slots: FindsNothing(slots, block_size=1),
    "prefix-5": lambda slots: FindsNothing(slots, block_size=5),
    "prefix-5-tail": lambda slots: FindsNothing(slots, block_size=5, unknown_first=False),
    "prefix-16": lambda slots: FindsNothing(slots, block_size=16, watermark=0.25),
    "prefix-300": lambda slots: FindsNothing(slots, block_size=300),
}
CHECKS = dict(allocator_checks(longest_tokens=LONGEST))
FREE_IS_EMPTY = {"many_small_requests_fill_the_pool", "a_short_is_honest", "release_gives_every_slot_back"}
"""The checks for which a slot that can be had holds nothing: a cached one can be had, too."""


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("make", ALLOCATORS)
def test_every_allocator_keeps_every_promise(make, check):
    CHECKS[check](ALLOCATORS[make])


@pytest.mark.parametrize("check", [check for check in CHECKS if check not in FREE_IS_EMPTY])
@pytest.mark.parametrize("make", CACHING)
def test_an_allocator_that_stores_and_evicts_keeps_them_too(make, check):
    CHECKS[check](CACHING[make])


class Watched(Walk):
    seen: Counter[str]

    def acquire(self, asks, *, decodes=False):
        written = sum(ask.sequence.written for ask in asks)
        got = super().acquire(asks, decodes=decodes)
        self.seen["finds itself again"] += sum(ask.sequence.written for ask in asks) > written
        if isinstance(got, Short):
            self.seen["short of a batch" if decodes else f"{got.cause}, admit {asks[0].admit}"] += 1
        elif got.copied_slots:
            self.seen["copy"] += 1
        return got

    def apply(self, leap, steps, limit):
        self.seen["leap to its limit" if leap.steps == limit else "leap that the pool ends"] += 1
        self.seen["leap over several steps"] += steps > 1
        super().apply(leap, steps, limit)

    def settle(self, chunks, *, stalled=False):
        self.seen["decoding requests stand still"] += stalled and any(s.decoding for s in self.running)
        return super().settle(chunks, stalled=stalled)

    def fork(self, parent, child):
        self.seen["fork of one that decodes" if parent.decoding else "fork at the end of a prompt"] += 1
        return super().fork(parent, child)

    def land(self, sequence):
        self.seen["comes back"] += 1
        super().land(sequence)

    def retire(self, sequence):
        self.seen["ends and stays"] += 1
        super().retire(sequence)

    def rest(self):
        self.seen["evicts"] += self.allocator.upkeep.evictions > 0
        self.seen["several run"] += len(self.running) > 2


class Evicting(Walk):
    leaps = 0

    def apply(self, leap, steps, limit):
        before = self.allocator.upkeep.evictions
        super().apply(leap, steps, limit)
        Evicting.leaps += self.allocator.upkeep.evictions > before


def evicting_leaps():
    for _ in walk(Evicting, CACHING["prefix-5"], LONGEST):
        pass
    return Evicting.leaps


def test_the_walks_meet_shortage_preemption_copies_and_leaps():
    kinds = {}
    for name in ("paged-5", "contiguous-7", "reserve", "radix-5-slru"):
        Watched.seen = kinds[name] = Counter()
        for _ in walk(Watched, ALLOCATORS[name], LONGEST):
            pass
    assert evicting_leaps() >= 20
    everywhere = {"capacity, admit True", "leap to its limit", "leap over several steps", "several run"}
    everywhere |= {"decoding requests stand still", "comes back", "ends and stays"}
    pressed = everywhere | {"short of a batch", "capacity, admit False", "leap that the pool ends"}
    shared = pressed | {"copy", "fork of one that decodes", "fork at the end of a prompt"}
    fragmented = pressed | {"copy", "fragmentation, admit True", "fragmentation, admit False"}
    cached = pressed - {"ends and stays"} | {"finds itself again", "evicts"}
    all_of_them = {"paged-5": shared, "contiguous-7": fragmented, "reserve": everywhere, "radix-5-slru": cached}
    for name, must in all_of_them.items():
        assert {what for what in must if kinds[name][what] >= 5} == must


def test_check_allocator_is_silent_about_a_good_one_and_refuses_unknown_names():
    check_allocator(ALLOCATORS["paged-16"], longest_tokens=20, skip=["acquire_is_atomic"])
    with pytest.raises(ValueError, match="skip names acquire_is_atomik; the checks are a_fresh_pool_is_empty"):
        check_allocator(ALLOCATORS["paged-16"], skip=["acquire_is_atomik"])
