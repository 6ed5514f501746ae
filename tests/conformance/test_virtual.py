"""`virtual` keeps every promise of an allocator, with pages of one token to pages of thousands."""

import pytest

from kvsim.memory.virtual import VirtualAllocator
from kvsim.testing import allocator_checks


def virtual(page_tokens, **options):
    return lambda slots: VirtualAllocator(slots, page_tokens=page_tokens, row_pages=64, **options)


ALLOCATORS = {
    "1": virtual(1),
    "5": virtual(5),
    "32": virtual(32),
    "32-ahead": virtual(32, mapped_ahead=True),
    "300": virtual(300),
    "300-ahead": virtual(300, mapped_ahead=True),
    "2048": virtual(2048),
}
CHECKS = dict(allocator_checks(longest_tokens=64))
LONG_CHECKS = dict(allocator_checks(longest_tokens=700))


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("make", ALLOCATORS)
def test_virtual_keeps_every_promise(make, check):
    CHECKS[check](ALLOCATORS[make])


@pytest.mark.parametrize("check", ["a_leap_equals_its_steps", "a_leap_knows_the_levels_of_its_steps"])
def test_leaps_over_requests_of_several_long_pages_are_their_steps(check):
    LONG_CHECKS[check](ALLOCATORS["300-ahead"])
