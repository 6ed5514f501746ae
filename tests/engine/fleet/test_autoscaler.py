"""The autoscaler alone, before replicas whose queue is given: who is ordered, and who takes requests from when on."""

from types import SimpleNamespace

import pytest

from kvsim.engine.clock import Clock
from kvsim.engine.fleet import Scaling
from kvsim.engine.fleet.autoscaler import Autoscaler

S = 10**12


def changes(queues, *, target=1, interval_s=10, start_up_s=60, settle_s=0, count=3):
    """Time, ordered and ready, where every replica's queue is the next of `queues` each time somebody looks."""
    replicas = [
        SimpleNamespace(
            live={}, scheduler=SimpleNamespace(waiting_count=0), start_up=lambda: None, shut_down=lambda: None
        )
        for _ in range(count)
    ]
    to_come = iter(queues)

    def over():
        found = next(to_come, None)
        for replica in replicas:
            replica.scheduler.waiting_count = found
        return found is None

    rule = Scaling(
        metric="waiting",
        target=target,
        least=1,
        interval_ps=interval_s * S,
        start_up_ps=start_up_s * S,
        settle_ps=settle_s * S,
        tolerance=0.1,
    )
    clock = Clock()
    scaler = Autoscaler(clock, replicas, rule, over)
    clock.run()
    return [(change.time_ps // S, change.ordered, change.ready) for change in scaler.changes]


def test_whoever_is_ordered_takes_requests_when_it_has_started():
    assert changes([3, *[1] * 9])[1:] == [(10, 3, 1), (70, 3, 2), (70, 3, 3)]


@pytest.mark.parametrize("queue", [2, 3])
def test_whoever_is_called_off_and_ordered_again_starts_from_the_beginning(queue):
    found = changes([queue, 0, queue, *[1] * 9])
    assert found[1:4] == [(10, queue, 1), (20, 1, 1), (30, queue, 1)]
    assert [time_s for time_s, _, ready in found if ready > 1] == [90] * (queue - 1)


def test_whoever_starts_in_no_time_takes_requests_at_once():
    assert changes([3, 0, 3, 1], start_up_s=0)[-1] == (30, 3, 3)
    assert max(time_s for time_s, _, _ in changes([3, 1], start_up_s=0)) == 10


def test_however_small_the_target_there_are_no_more_than_there_are():
    assert changes([1, 1], target=1e-320, start_up_s=0)[-1] == (10, 3, 3)
