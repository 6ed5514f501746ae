"""What every scheduler promises (see `scheduling.interface`), one check each.

Those on order (admission order, first come first served, the last admitted is preempted, nothing is admitted beside a
preemption) are rules of vLLM's scheduler; a policy with other rules names them in `skip`.
"""

from collections.abc import Callable, Collection
from functools import partial

from kvsim.testing.promises import run_all, select
from kvsim.testing.schedulers.drive import Limits, MakeScheduler
from kvsim.testing.schedulers.order import (
    first_come_first_served,
    nothing_is_admitted_in_a_step_that_preempts,
    running_requests_keep_admission_order,
    stable_steps_are_honest,
    the_last_admitted_is_preempted,
    the_same_calls_give_the_same_plans,
    the_truth_stays_hidden,
)
from kvsim.testing.schedulers.work import (
    chunks_follow_the_known_tokens,
    everything_ends,
    no_work_waits_that_could_be_done,
    nobody_that_decodes_is_left_out,
    requests_and_slots_are_conserved,
    the_limits_hold,
)

_CHECKS: tuple[Callable[..., None], ...] = (
    the_limits_hold,
    nobody_that_decodes_is_left_out,
    chunks_follow_the_known_tokens,
    no_work_waits_that_could_be_done,
    running_requests_keep_admission_order,
    first_come_first_served,
    nothing_is_admitted_in_a_step_that_preempts,
    the_last_admitted_is_preempted,
    stable_steps_are_honest,
    everything_ends,
    requests_and_slots_are_conserved,
    the_same_calls_give_the_same_plans,
    the_truth_stays_hidden,
)


def scheduler_checks(
    *, max_num_seqs: int, max_num_batched_tokens: int, longest_tokens: int = 48, skip: Collection[str] = ()
) -> list[tuple[str, Callable[[MakeScheduler], None]]]:
    """Every promise of a scheduler as (name, check); a check takes `make`, which makes one for an allocator.

    The limits are those that `make` gives it; `longest_tokens` is the most that a request may come to hold.
    """
    limits = Limits(max_num_seqs, max_num_batched_tokens, longest_tokens)
    return select([(check.__name__, partial(check, limits=limits)) for check in _CHECKS], skip)


def check_scheduler(
    make: MakeScheduler,
    *,
    max_num_seqs: int,
    max_num_batched_tokens: int,
    longest_tokens: int = 48,
    skip: Collection[str] = (),
) -> None:
    """Run them all; one CheckError names each broken promise."""
    checks = scheduler_checks(
        max_num_seqs=max_num_seqs,
        max_num_batched_tokens=max_num_batched_tokens,
        longest_tokens=longest_tokens,
        skip=skip,
    )
    run_all(checks, make)
