"""A block is stored when the step that fills it begins, whether the engine steps or leaps there, or stops in it."""

import pytest

from kvsim.memory.prefix import PrefixAllocator
from kvsim.request import Request
from tests.engine.test_replica import Stepwise, serve


def stored_at(**options):
    """(time in picoseconds, blocks) of each moment at which blocks were stored, a step taking 1,000 ps."""
    log = serve([Request(0, 0, 4, 20)], allocator=PrefixAllocator(64, block_size=4), kv_events=True, **options)
    found = []
    for batch in log.recording.cache.events:
        blocks = [len(event["block_hashes"]) for event in batch["events"] if event["type"] == "BlockStored"]
        if blocks:
            found.append((round(batch["ts"] * 1e12), sum(blocks)))
    return found


@Stepwise
def test_each_block_is_stored_when_the_step_that_writes_its_last_token_begins(stepwise):
    # The prompt fills the first; decode step k, from 1,000 k on, writes token 4 + k.
    assert stored_at(stepwise=stepwise) == [(0, 1), (4_000, 1), (8_000, 1), (12_000, 1), (16_000, 1)]


@Stepwise
@pytest.mark.parametrize(("horizon_ps", "last_ps"), [(8_000, 4_000), (8_500, 8_000), (9_000, 8_000)])
def test_a_run_that_is_stopped_in_a_step_has_stored_its_block_when_it_began(stepwise, horizon_ps, last_ps):
    assert stored_at(stepwise=stepwise, horizon_ps=horizon_ps)[-1] == (last_ps, 1)


@Stepwise
def test_what_comes_after_a_leap_has_its_own_time(stepwise):
    """The second request comes 500 ps after the first has gone, and finds what it left at that time, not before."""
    requests = [Request(0, 0, 4, 9), Request(1, 10_000, 9, 1)]
    allocator = PrefixAllocator(64, block_size=4)
    log = serve(requests, allocator=allocator, kv_events=True, stepwise=stepwise)
    assert [round(batch["ts"] * 1e12) for batch in log.recording.cache.events] == [0, 4_000, 8_000, 10_000]
