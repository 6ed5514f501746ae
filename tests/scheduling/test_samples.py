"""Several samples of one prompt: computed once and shared where the allocator can, n times where it cannot."""

from fractions import Fraction

import pytest

from kvsim.memory.contiguous import ContiguousAllocator
from kvsim.memory.host import HostPool
from kvsim.memory.paged import PagedAllocator
from kvsim.request import Request
from kvsim.scheduling.continuous import ContinuousScheduler
from kvsim.scheduling.prefill_first import PrefillFirstScheduler
from kvsim.scheduling.static import StaticScheduler
from tests.scheduling import stories
from tests.scheduling.stories import ends, events, gaps, records, series, serve

scheduler = stories.scheduler


def blocks(slots=64, **rules):
    """Blocks of 4."""
    return lambda: scheduler(allocator=PagedAllocator(slots, block_size=4), **rules)


# Where blocks can be shared.


def test_the_prompt_is_computed_once_and_each_sample_goes_its_own_way():
    """One prompt of 5 for three samples of 3, 2 and 4 tokens: first tokens at 1,000, the last one's last at 4,000."""
    log = serve([Request(0, 0, 5, 3, more_outputs=(2, 4))], blocks())
    [record] = records(log).values()
    assert (record.end, record.samples, record.generated_tokens, record.longest_tokens) == ("finished", 3, 9, 4)
    assert (record.first_token_ps, record.end_ps) == (1000, 4000)
    assert log.recording.requests.arrived == 1
    assert gaps(log) == (2 + 1 + 3, 6000, 1000)
    assert series(log, "prefill_tokens", "decode_tokens", "running") == [(5, 0, 1), (0, 3, 3), (0, 2, 2), (0, 1, 1)]


def test_the_last_block_of_the_prompt_is_copied_for_all_but_one_of_its_writers():
    """5 = 4 + 1: the full block is shared while they live, the other's token is copied twice in the second step.

    Used in it: 5, beside 2 slots that are being copied into. Then each has its own second block with 2 tokens.
    """
    log = serve([Request(0, 0, 5, 3, more_outputs=(2, 4))], blocks())
    assert log.recording.copied_slots == 2
    assert log.recording.upkeep.copies == 2
    # The second sample is gone after the second step, the first after the third.
    assert series(log, "used", "moving", "shared", "duplicate") == [
        (0, 0, 0, 0),
        (5, 2, 8, 0),
        (4 + 2 + 2, 0, 4, 1),
        (4 + 3, 0, 0, 0),
    ]
    assert log.recording.duplicates.slots == 0


def test_a_prompt_of_whole_blocks_is_never_copied():
    log = serve([Request(0, 0, 8, 3, more_outputs=(3,))], blocks())
    assert (log.recording.copied_slots, log.recording.memory.totals.duplicate_ps) == (0, 0)
    assert series(log, "used", "shared") == [(0, 0), (8, 8), (8 + 2, 8)]


def test_sharing_saves_the_share_of_the_prompt_of_all_but_one_sample():
    """s (n - 1) / n of the blocks, s the prompt's share: 4 blocks of prompt and 1 of output, 4 samples."""
    log = serve([Request(0, 0, 16, 4, more_outputs=(4, 4, 4))], blocks())
    share, samples = Fraction(4, 5), 4
    [_, *rows] = series(log, "used", "reserved", "internal", "shared")
    for used, reserved, internal, shared in rows:
        assert samples * shared == share * (samples - 1) * (shared + used + reserved + internal)


def test_samples_are_seats_from_the_start():
    """4 seats: the second request waits until only one sample of the first is left, for it wants two."""
    requests = [Request(0, 0, 4, 2, more_outputs=(2, 4)), Request(1, 0, 4, 2, more_outputs=(2,))]
    log = serve(requests, blocks(seqs=4))
    assert records(log)[1].first_scheduled_ps == 2000
    assert log.recording.memory.totals.max_running == 3


def test_samples_that_could_never_run_all_at_once_come_one_by_one():
    log = serve([Request(0, 0, 4, 2, more_outputs=(2, 2))], blocks(seqs=2))
    assert ends(log) == {0: ("finished", 4000, 6)}
    assert series(log, "prefill_tokens", "running") == [(8, 2), (0, 2), (4, 1), (0, 1)]


def test_a_sample_that_is_preempted_computes_the_prompt_for_itself():
    """4 blocks of 1 slot beyond the prompt of 6: in the fourth step the last sample loses 6 + 2 tokens."""
    log = serve([Request(0, 0, 6, 4, more_outputs=(4,))], lambda: scheduler(pool=10))
    [record] = records(log).values()
    assert (record.preemptions, record.lost_tokens, record.recomputed_tokens) == (1, 8, 8)
    # The first is done at 4,000; the other has 9 known tokens to compute, its fourth token comes with them.
    assert ends(log) == {0: ("finished", 5000, 8)}
    assert events(log) == [(3000, 0, "capacity", "preempt")]
    assert gaps(log) == (6, 3000 + 2 * 1000 + 2000, 2000)


def test_a_sample_that_is_swapped_comes_back_with_the_prompt_of_its_own():
    log = serve(
        [Request(0, 0, 6, 4, more_outputs=(5,))],
        lambda: scheduler(pool=10, preemption="swap", host=HostPool(20)),
    )
    [record] = records(log).values()
    assert (record.swapped_tokens, record.lost_tokens, log.recording.swapped_slots) == (8, 0, 16)
    assert ends(log) == {0: ("finished", 6000, 9)}


def test_with_abort_one_sample_fails_and_the_request_has_ended_badly_when_the_others_are_done():
    log = serve([Request(0, 0, 6, 4, more_outputs=(4,))], lambda: scheduler(pool=10, preemption="abort"))
    assert ends(log) == {0: ("aborted", 4000, 3 + 4)}
    assert events(log) == [(3000, 0, "capacity", "abort")]


def test_with_never_room_for_the_ends_of_all_samples_is_committed():
    """Two samples of at most 6 + 4 tokens are 20 of the 25 slots: another request of 10 waits for one of them."""
    requests = [Request(0, 0, 6, 4, 4, more_outputs=(2,)), Request(1, 0, 6, 2, 4)]
    log = serve(requests, lambda: scheduler(pool=25, preemption="never", max_model_len=64))
    assert [records(log)[number].first_scheduled_ps for number in range(2)] == [0, 2000]
    assert log.recording.requests.events == [(0, 1, "capacity", "wait", 10, 5, 5)]


def test_with_never_samples_too_many_to_be_committed_at_once_come_one_by_one():
    log = serve(
        [Request(0, 0, 6, 4, 4, more_outputs=(2,))],
        lambda: scheduler(pool=19, preemption="never", max_model_len=64),
    )
    assert ends(log) == {0: ("finished", 6000, 6)}


@pytest.mark.parametrize(("patience_ps", "tokens"), [(500, 3), (1000, 3), (1001, 6)])
def test_a_client_that_gives_up_ends_all_samples_with_the_step_in_progress(patience_ps, tokens):
    """At 500 the prompt is being computed: the samples fork off it at the end of that very step, and go with it."""
    log = serve([Request(0, 0, 5, 9, patience_ps=patience_ps, more_outputs=(9, 9))], blocks())
    assert ends(log) == {0: ("cancelled", 1000 if tokens == 3 else 2000, tokens)}
    assert log.recording.occupancy.count == 0


def test_a_client_that_gives_up_takes_the_samples_that_wait_with_it_at_once():
    """The second sample is preempted at 3,000; at 3,500 it ends, and the first with its step at 4,000."""
    log = serve([Request(0, 0, 6, 9, patience_ps=3500, more_outputs=(9,))], lambda: scheduler(pool=10))
    assert ends(log) == {0: ("cancelled", 4000, 3 + 4)}


def test_the_horizon_leaves_all_samples_unfinished():
    log = serve([Request(0, 0, 5, 9, more_outputs=(9,))], blocks(), horizon_ps=2500)
    assert ends(log) == {0: ("unfinished", 2500, 4)}
    log = serve([Request(0, 0, 5, 9, more_outputs=(9,))], blocks(), horizon_ps=500)
    assert ends(log) == {0: ("unfinished", 500, 0)}


def test_samples_of_one_token_are_done_with_the_prompt():
    log = serve([Request(0, 0, 5, 1, more_outputs=(1, 2))], blocks())
    assert ends(log) == {0: ("finished", 2000, 4)}
    assert log.recording.copied_slots == 0


def test_prompts_first_forks_too():
    log = serve([Request(0, 0, 5, 3, more_outputs=(2, 4))], lambda: blocks_first())
    assert ends(log) == {0: ("finished", 4000, 9)}
    assert log.recording.copied_slots == 2


def blocks_first():
    return scheduler(PrefillFirstScheduler, allocator=PagedAllocator(64, block_size=4))


def test_copies_wait_while_prompts_are_computed():
    """The samples fork at 1,000; the prompt of 1 is computed before they write, and only then are copies made."""
    log = serve([Request(0, 0, 5, 3, more_outputs=(3,)), Request(1, 500, 3, 2)], blocks_first)
    assert series(log, "prefill_tokens", "moving", "decode_tokens") == [(5, 0, 0), (3, 0, 0), (0, 1, 3), (0, 0, 2)]
    # Both samples wait for it: 2 gaps of 2,000 and 2 of 1,000, and the gap of 1.
    assert gaps(log) == (5, 2 * 2000 + 2 * 1000 + 1000, 2000)


# Where they cannot.


@pytest.mark.parametrize("kind", [ContinuousScheduler, PrefillFirstScheduler, StaticScheduler])
def test_an_allocator_that_cannot_share_computes_and_keeps_the_prompt_for_each_sample(kind):
    """Prompts of 5 are kept three times, then twice: sharing would have saved 10 slots, then 5."""
    log = serve(
        [Request(0, 0, 5, 3, more_outputs=(2, 4))],
        lambda: scheduler(kind, allocator=ContiguousAllocator(64, chunk=8)),
    )
    assert ends(log) == {0: ("finished", 4000, 9)}
    held = (10, 10, 10) if kind is StaticScheduler else (10, 5, 0)
    assert series(log, "prefill_tokens", "shared", "duplicate") == [(15, 0, 0), *((0, 0, slots) for slots in held)]
    assert log.recording.duplicates.slots == 0


def test_a_static_batch_shares_nothing_even_where_blocks_could_be():
    log = serve(
        [Request(0, 0, 5, 2, more_outputs=(2,))],
        lambda: scheduler(StaticScheduler, allocator=PagedAllocator(64, block_size=4)),
    )
    assert series(log, "prefill_tokens", "shared", "duplicate") == [(10, 0, 0), (0, 0, 5)]
