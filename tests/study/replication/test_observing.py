"""What is observed of a run while it goes on is what its tables say, and takes bounded memory."""

from array import array

import numpy as np
import pytest

from kvsim import run
from kvsim.metrics.tables import Dropped
from kvsim.study.replication.runs import bins
from kvsim.study.replication.runs.bins import TimeBins
from kvsim.study.replication.runs.observing import mean_levels
from kvsim.study.replication.runs.replicate import Piece, Serial, observed_run
from kvsim.study.replication.trust import judged
from kvsim.study.replication.warmup import found_warmup, with_warmup
from tests.study.replication.cases import traced, variants


def whole(*numbers):
    return np.array(numbers, dtype=np.int64)


def test_levels_are_integrated_exactly_over_any_slices():
    held = TimeBins()
    held.add(whole(0, 4 * 10**9), whole(2 * 10**9, 4 * 10**9), whole(6, 3))
    assert held.means(0, 8 * 10**9, 4) == pytest.approx([6, 0, 3, 3])
    assert held.means(10**9, 9 * 10**9, 2) == pytest.approx([(6 + 3) / 4, 9 / 4])


def test_bins_double_when_time_runs_on_and_lose_nothing(monkeypatch):
    monkeypatch.setattr(bins, "MOST", 8)
    held = TimeBins()
    for second in range(40):
        held.add(whole(second * 10**9), whole(10**9), whole(second))
    assert held.width_ps == 8 * 10**9
    assert held.means(0, 40 * 10**9, 5) == pytest.approx([3.5, 11.5, 19.5, 27.5, 35.5])
    times_s, levels = held.series(40 * 10**9)
    assert times_s == pytest.approx([0, 8e-3, 16e-3, 24e-3, 32e-3])
    assert levels == pytest.approx([3.5, 11.5, 19.5, 27.5, 35.5])


@pytest.fixture(scope="module")
def observed():
    [_, (_, scenario)] = traced("lmcache-web-agents", variants={"a": {}, "b": {"allocator.prefix_caching": True}})
    return run(scenario), observed_run(Piece(scenario, scenario.seed), Dropped())


def test_latencies_are_those_of_the_table_in_the_order_of_id(observed):
    result, first = observed
    table = result.requests
    requests = first.observed.by_request()
    assert requests["id"].tolist() == table["id"].tolist()
    for name in ("arrival_s", "queue_s", "prefill_s", "ttft_s", "tpot_s"):
        assert np.array_equal(requests[name], table[name].to_numpy(dtype=float), equal_nan=True), name
    assert np.nansum(requests["hit_tokens"]) == result.metrics["hit_tokens"] > 0


def test_the_observed_run_has_the_result_of_the_plain_one(observed):
    result, first = observed
    assert first.result.summary == result.summary


def test_the_fill_is_the_integral_of_the_table(observed):
    result, first = observed
    width_ps = first.observed.filled.width_ps
    end_ps = -(-round(result.metrics["simulated_s"] * 1e12) // width_ps) * width_ps
    memory = result.memory
    filled = ((memory["used"] + memory["cached"])[:-1] * np.diff(memory["time_s"])).sum()
    assert first.observed.filled.means(0, end_ps, 1)[0] * end_ps / 1e12 == pytest.approx(filled, rel=1e-6)


def test_queue_and_presence_are_the_means_of_the_run(observed):
    result, first = observed
    metrics, run_ = result.metrics, first.replicate
    assert run_.waiting.mean() == pytest.approx(metrics["mean_waiting"], rel=1e-6)
    assert run_.present.mean() == pytest.approx(metrics["mean_waiting"] + metrics["mean_running"], rel=1e-6)


def test_stays_are_counted_in_the_slices_that_they_reach_into():
    starts, ends = np.array([0.0, 1.0, 3.0]), np.array([2.0, 9.0, 3.5])
    assert mean_levels(starts, ends, (0.0, 4.0), 2) == pytest.approx([1.5, 1.25])
    assert mean_levels(starts[:0], ends[:0], (0.0, 4.0), 2).tolist() == [0, 0]


def test_a_fleet_is_observed_as_one():
    [(_, one), _] = variants(fleet={"replicas": 3, "router": "round-robin"})
    result, first = run(one), observed_run(Piece(one, one.seed), Dropped())
    assert first.result.summary == result.summary
    assert first.observed.by_request()["id"].tolist() == list(range(60))
    assert first.replicate.present.mean() == pytest.approx(
        result.metrics["mean_waiting"] + result.metrics["mean_running"], rel=1e-6
    )
    assert first.observed.filled.means(0, 10**13, 1)[0] > 0


def test_no_record_is_no_trouble():
    observing = observed_run(Piece(*_empty()), Dropped()).observed
    observing.steps(array("q"), {}, 10, has_holes=False, last=True)
    assert observing.by_request()["id"].size >= 0


def _empty():
    [(_, scenario), _] = variants()
    return scenario, 0


LIGHT = {"rate": "4/s", "requests": 60, "prompt_tokens": 50, "output_tokens": 10}


@pytest.mark.parametrize(
    ("changes", "settles"),
    [
        ({}, True),
        ({"horizon": "8s"}, True),
        ({"horizon": "8s", "workload": LIGHT | {"requests": 100_000}, "window": {"warmup": "2s"}}, True),
        ({"workload": LIGHT | {"rate": "1000/s"}}, False),
        ({"workload": LIGHT | {"rate": "1000/s"}, "horizon": "1500ms"}, False),
        ({"window": {"until": "last_finish"}}, False),
    ],
)
def test_a_window_shows_a_steady_state_where_requests_arrive_until_it_ends(changes, settles):
    [(_, one), _] = variants(**{"workload": LIGHT} | changes)
    replicate = observed_run(Piece(one, one.seed), Dropped()).replicate
    assert replicate.settles is settles
    assert judged([replicate]) is None or not judged([replicate]).saturated


# Warm-up.


def test_a_warm_up_that_is_set_is_said_to_come_from_there():
    [(_, scenario), _] = variants()
    late = with_warmup(scenario, 3 * 10**12)
    assert run(late).metrics["window_s"][0] == 3.0
    assert late.resolved()["window.warmup"] == {"value": "3s", "source": "--warmup"}


def test_a_cache_that_fills_takes_longer_to_settle_than_one_that_is_not_there():
    workload = {"rate": "4/s", "requests": 160, "prompt_tokens": 150, "output_tokens": 20}
    plain, cached = variants(
        workload=workload, pool={"tokens": 8000}, variants={"plain": {}, "cached": {"allocator.prefix_caching": True}}
    )
    found = found_warmup([plain, cached], seed=None, executor=Serial())
    # Each request leaves some 160 slots behind, so that the pool is full after 50 of them.
    assert found.slowest == "cache fill of cached"
    assert 8 <= found.cut_ps / 1e12 <= 16
    assert not found.unsettled
