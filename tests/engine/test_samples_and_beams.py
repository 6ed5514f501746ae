"""Samples of one prompt in the engine, by hand: what they share, what is copied, and what is kept twice."""

import pytest

from kvsim.engine.run import simulate
from kvsim.memory.paged import PagedAllocator
from kvsim.memory.reserve import ReserveAllocator
from kvsim.metrics.memory import SERIES
from kvsim.request import Request
from kvsim.scheduling.continuous import ContinuousScheduler
from kvsim.timing.interface import LinearTiming
from tests.laws.test_addresses import holds

STEP_PS = 1000


def served(requests, allocator, *, stepwise=False, addresses=False, **options):
    scheduler = ContinuousScheduler(allocator, max_num_seqs=8, max_num_batched_tokens=64, **options)
    timing = LinearTiming(step_ps=STEP_PS)
    return simulate(requests, scheduler, timing, max_model_len=64, stepwise=stepwise, check=True, addresses=addresses)


def column(log, name):
    return log.recording.memory.series[SERIES.index(name) :: len(SERIES)].tolist()


@pytest.fixture(params=[False, True], ids=["leaping", "stepwise"])
def stepwise(request):
    return request.param


def test_three_samples_share_the_full_blocks_of_their_prompt_and_copy_the_rest():
    """Blocks of 4, a prompt of 6 tokens, outputs of 4 tokens each: one block stays shared, 2 slots are copied twice."""
    log = served([Request(0, 0, 6, 4, more_outputs=(4, 4))], PagedAllocator(64, block_size=4), stepwise=True)
    # The prompt; then three steps, in the first of which two of the three get a copy of the last block.
    assert column(log, "used") == [0, 6, 4 + 3 * 3, 4 + 3 * 4]
    assert column(log, "moving") == [0, 4, 0, 0]
    assert column(log, "shared") == [0, 8, 8, 8]
    assert column(log, "duplicate") == [0, 0, 4, 4]
    assert log.recording.copied_slots == 4
    [record] = log.recording.requests.ended
    assert (record.samples, record.generated_tokens, record.end_ps) == (3, 12, 4 * STEP_PS)


def test_where_nothing_is_shared_every_sample_keeps_the_whole_prompt(stepwise):
    log = served([Request(0, 0, 6, 4, more_outputs=(4, 4))], ReserveAllocator(64, max_model_len=16), stepwise=stepwise)
    assert column(log, "duplicate")[1:] == [12] * (len(column(log, "duplicate")) - 1)
    assert column(log, "shared") == [0] * len(column(log, "shared"))


def test_the_first_token_is_the_first_samples_and_the_end_the_last_ones(stepwise):
    log = served([Request(0, 0, 6, 2, more_outputs=(9, 1))], PagedAllocator(64, block_size=4), stepwise=stepwise)
    [record] = log.recording.requests.ended
    assert (record.first_token_ps, record.end_ps) == (STEP_PS, 9 * STEP_PS)
    assert (record.generated_tokens, record.longest_tokens, record.gaps) == (12, 9, 8)


def test_a_beam_that_is_dropped_shares_what_the_other_has_written():
    """After 6 output tokens 6 + 5 are written: two blocks are full, and who writes first gets a copy of the third."""
    request = Request(0, 0, 6, 12, more_outputs=(12,), replacements=((6, 1, 0),))
    log = served([request], PagedAllocator(64, block_size=4), stepwise=True)
    assert column(log, "shared") == [0] + 5 * [4] + 6 * [8]
    # Up to the replacement 4 slots are shared and each has 6 of its own; then 8 are, and 3 more until they are copied.
    assert column(log, "used")[5:8] == [4 + 2 * 6, 8 + 3, 8 + 2 * 4]
    assert column(log, "duplicate") == [0, 0] + 4 * [2] + 6 * [0]
    assert log.recording.copied_slots == 2 + 3


def test_beams_leap_as_they_step():
    requests = [
        Request(
            number,
            number * 700,
            5 + number,
            14,
            more_outputs=(14, 14),
            replacements=((2, 1, 0), (5, 2, 1), (5, 1, 0), (9, 2, 0), (13, 1, 2)),
        )
        for number in range(6)
    ]
    for slots in (400, 96, 60):
        one, other = (served(requests, PagedAllocator(slots, block_size=4), stepwise=way) for way in (False, True))
        assert one.recording.requests.ended == other.recording.requests.ended
        assert one.recording.copied_slots == other.recording.copied_slots
        totals = [log.recording.memory.totals for log in (one, other)]
        assert totals[0].slots_ps == totals[1].slots_ps
        assert totals[0].shared_ps == totals[1].shared_ps
        assert totals[0].duplicate_ps == totals[1].duplicate_ps
        holds(served(requests, PagedAllocator(slots, block_size=4), stepwise=True, addresses=True))


def test_a_beam_that_was_preempted_has_fallen_behind_and_is_left_alone():
    requests = [Request(n, 0, 8, 20, more_outputs=(20,), replacements=((15, 1, 0),)) for n in range(3)]
    log = served(requests, PagedAllocator(72, block_size=4), stepwise=False)
    assert log.recording.requests.preemptions
    assert [record.end for record in log.recording.requests.ended] == ["finished"] * 3
