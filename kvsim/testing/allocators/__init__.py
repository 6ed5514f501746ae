"""What every allocator promises (see `memory.interface`), one check each."""

from collections.abc import Callable, Collection
from functools import partial

from kvsim.testing.allocators.forks import a_block_in_common_is_copied_by_all_writers_but_the_last, a_fork_takes_no_room
from kvsim.testing.allocators.grants import (
    a_fresh_pool_is_empty,
    a_grant_owns_the_tokens_asked,
    a_short_is_honest,
    acquire_is_atomic,
    an_empty_pool_admits_whoever_fits,
    capacity_holds_the_tokens,
    growth_follows_the_rule,
    many_small_requests_fill_the_pool,
)
from kvsim.testing.allocators.leaps import (
    a_leap_equals_its_steps,
    a_leap_knows_the_levels_of_its_steps,
    a_leap_takes_the_steps_that_the_pool_serves,
)
from kvsim.testing.allocators.slots import (
    a_double_free_is_refused,
    a_slot_is_used_only_after_settle,
    audit_misses_nobody,
    reading_changes_nothing,
    release_gives_every_slot_back,
    slots_are_conserved_after_every_verb,
    the_same_calls_give_the_same_state,
)
from kvsim.testing.allocators.upkeep import upkeep_counts_what_is_done
from kvsim.testing.allocators.walk import MakeAllocator
from kvsim.testing.promises import run_all, select

_CHECKS: tuple[Callable[..., None], ...] = (
    a_fresh_pool_is_empty,
    capacity_holds_the_tokens,
    an_empty_pool_admits_whoever_fits,
    many_small_requests_fill_the_pool,
    a_grant_owns_the_tokens_asked,
    a_short_is_honest,
    acquire_is_atomic,
    slots_are_conserved_after_every_verb,
    a_slot_is_used_only_after_settle,
    growth_follows_the_rule,
    release_gives_every_slot_back,
    a_double_free_is_refused,
    audit_misses_nobody,
    a_fork_takes_no_room,
    a_block_in_common_is_copied_by_all_writers_but_the_last,
    upkeep_counts_what_is_done,
    reading_changes_nothing,
    the_same_calls_give_the_same_state,
    a_leap_takes_the_steps_that_the_pool_serves,
    a_leap_equals_its_steps,
    a_leap_knows_the_levels_of_its_steps,
)


def allocator_checks(
    *, longest_tokens: int = 64, skip: Collection[str] = ()
) -> list[tuple[str, Callable[[MakeAllocator], None]]]:
    """Every promise of an allocator as (name, check); a check takes `make`, which makes a pool of so many slots.

    `longest_tokens` is the most tokens that a sequence may come to hold (the model's limit, where the policy has one).
    """
    checks = [(check.__name__, partial(check, longest=longest_tokens)) for check in _CHECKS]
    return select(checks, skip)


def check_allocator(make: MakeAllocator, *, longest_tokens: int = 64, skip: Collection[str] = ()) -> None:
    """Run them all; one CheckError names each broken promise."""
    run_all(allocator_checks(longest_tokens=longest_tokens, skip=skip), make)
