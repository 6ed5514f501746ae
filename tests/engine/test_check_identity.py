"""`--check` holds the accounting identity itself: each class at or above zero, and free what the allocator says."""

import pytest

from kvsim.engine.run import simulate
from kvsim.errors import CheckError
from kvsim.memory.contiguous import ContiguousAllocator
from kvsim.memory.paged import PagedAllocator
from kvsim.metrics.memory.owners import NeverWritten
from kvsim.request import Request
from kvsim.scheduling.continuous import ContinuousScheduler
from kvsim.timing.interface import LinearTiming

REQUESTS = [Request(0, 0, 5, 7), Request(1, 2500, 9, 3)]
STEPWISE = pytest.mark.parametrize("stepwise", [False, True], ids=["leaping", "stepwise"])


def run(allocator, **options):
    return simulate(
        iter(REQUESTS),
        ContinuousScheduler(allocator),
        LinearTiming(step_ps=1000),
        max_model_len=64,
        check=True,
        **options,
    )


@STEPWISE
def test_slots_that_would_never_be_written_cannot_exceed_what_is_owned(monkeypatch, stepwise):
    honest = NeverWritten.owns
    monkeypatch.setattr(NeverWritten, "owns", lambda self, sequence, slots: honest(self, sequence, slots + 50))
    with pytest.raises(CheckError, match="the classes of the accounting identity do not hold"):
        run(PagedAllocator(64, block_size=4), stepwise=stepwise)


@STEPWISE
def test_no_more_slots_can_be_lost_to_shape_than_are_free(monkeypatch, stepwise):
    monkeypatch.setattr(ContiguousAllocator, "external", lambda self, need: self.usage().free + 7)
    with pytest.raises(CheckError, match="free -7"):
        run(ContiguousAllocator(64, chunk=4), stepwise=stepwise)


@STEPWISE
def test_a_leak_at_the_horizon_is_caught(monkeypatch, stepwise):
    honest = PagedAllocator.release

    def keeps_a_block(self, sequence):
        honest(self, sequence)
        self.free_blocks -= 1

    monkeypatch.setattr(PagedAllocator, "release", keeps_a_block)
    with pytest.raises(CheckError, match="a leak"):
        run(PagedAllocator(64, block_size=4), horizon_ps=3500, stepwise=stepwise)


@STEPWISE
def test_a_request_that_is_lost_on_arrival_is_caught_at_its_arrival(stepwise):
    class Forgets(ContinuousScheduler):
        def submit(self, sequence):
            if sequence.id != 1:
                super().submit(sequence)

    with pytest.raises(CheckError, match=r"requests \[1\] are known to the engine or to the scheduler"):
        simulate(
            iter(REQUESTS),
            Forgets(PagedAllocator(64, block_size=4)),
            LinearTiming(step_ps=1000),
            max_model_len=64,
            check=True,
            stepwise=stepwise,
            horizon_ps=2600,
        )


@STEPWISE
def test_a_sound_run_passes_with_a_plan_under_way_at_the_horizon(stepwise):
    for horizon_ps in range(500, 9000, 500):
        log = run(PagedAllocator(64, block_size=4), horizon_ps=horizon_ps, stepwise=stepwise)
        assert log.recording.requests.arrived == len(log.recording.requests.ended)
