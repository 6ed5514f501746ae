"""Both sides in one form, and what lies between them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvsim.study.recorded.compare import compare
from kvsim.study.recorded.measured import Measured, Requests, Series
from kvsim.study.recorded.simulated import simulated


def side(running, waiting, shares=None):
    columns = {"running": np.array(running, float), "waiting": np.array(waiting, float)}
    if shares is not None:
        columns["kv_share"] = np.array(shares, float)
    return Measured(source="made up", series=Series(np.arange(1.0, len(running) + 1), columns))


def test_a_run_is_no_distance_from_itself(result):
    times = np.linspace(0.1, 10, 40)
    found = compare(simulated(result, times), simulated(result, times))
    assert all(row.error in (0, None) and row.distance in (0, None) for row in found.rows)
    assert found.pairs == {"ttft_s": 0, "tpot_s": 0, "e2e_s": 0}


def test_gauges_are_those_of_the_moment_and_nothing_runs_after_the_end(result):
    memory, end_s = result.memory, result.metrics["simulated_s"]
    times = np.array([end_s / 3, end_s / 2, end_s + 1])
    series = simulated(result, times).series
    for at in (0, 1):
        row = memory[memory.time_s <= times[at]].iloc[-1]
        assert series.get("running")[at] == row.running
        assert series.get("waiting")[at] == row.waiting
        held = result.metrics["pool_tokens"] - row.free - row.cached
        assert series.get("kv_share")[at] == held / result.metrics["pool_tokens"]
    assert [series.get(name)[2] for name in ("running", "waiting", "kv_share")] == [0, 0, 0]


def test_what_was_emitted_between_moments_adds_up_to_all_tokens(result):
    times = np.append(np.arange(0.1, result.metrics["simulated_s"], 0.1), result.metrics["simulated_s"] + 1)
    series = simulated(result, times).series
    lengths = np.diff(times, prepend=0.0)
    outputs = result.requests.generated_tokens.sum()
    assert (series.get("output_tokens_per_s") * lengths).sum() == pytest.approx(outputs, rel=0.02)
    assert (series.get("prompt_tokens_per_s") * lengths).sum() == pytest.approx(result.requests.prompt_tokens.sum())


def test_the_mean_while_queueing_leaves_out_moments_at_which_nobody_waits():
    found = compare(side([10, 20, 30], [0, 1, 5]), side([10, 24, 36], [0, 2, 0]))
    row = found.row("running_queueing")
    assert (row.measured, row.simulated, row.error) == (25, 24, pytest.approx(-0.04))
    assert found.row("running").distance == pytest.approx((0 + 4 + 6) / 3)


def test_shares_differ_by_points_and_others_by_a_ratio():
    found = compare(side([10], [1], [0.5]), side([12], [1], [0.45]))
    assert found.row("kv_share").error == pytest.approx(-0.05)
    assert found.row("running").error == pytest.approx(0.2)


def test_what_was_not_measured_has_no_row_but_preemptions_are_always_told():
    found = compare(side([10], [1]), replace(side([12], [1], [0.45]), preemptions=7))
    assert {row.key for row in found.rows} == {"running", "running_queueing", "waiting", "preemptions"}
    assert (found.row("preemptions").simulated, found.row("preemptions").error) == (7, None)


def requests(ttft, e2e, outputs):
    full = np.ones(len(ttft))
    return Requests(
        prompt_tokens=100 * full,
        output_tokens=np.array(outputs, float),
        arrival_s=np.arange(len(ttft), dtype=float),
        ttft_s=np.array(ttft, float),
        e2e_s=np.array(e2e, float),
    )


@given(scale=st.floats(0.5, 2), count=st.integers(1, 20))
def test_requests_that_take_a_share_longer_are_that_share_off_one_by_one(scale, count):
    ttft, e2e = np.linspace(0.1, 3, count), np.linspace(0.3, 9, count)
    was = Measured(source="a", requests=requests(ttft, e2e, [5] * count))
    now = Measured(source="b", requests=requests(scale * ttft, scale * e2e, [5] * count))
    found = compare(was, now)
    assert found.pairs == pytest.approx(dict.fromkeys(("ttft_s", "tpot_s", "e2e_s"), abs(scale - 1)), abs=1e-9)
    assert found.row("e2e_s.mean").error == pytest.approx(scale - 1, abs=1e-9)


def test_other_requests_are_not_compared_one_by_one():
    one = Measured(source="a", requests=requests([1, 2], [2, 3], [5, 6]))
    assert compare(one, Measured(source="b", requests=requests([1, 2], [2, 3], [5, 7]))).pairs == {}
    assert compare(one, Measured(source="b", requests=requests([1], [2], [5]))).pairs == {}


def test_a_request_of_one_token_has_no_tpot():
    assert np.isnan(requests([1.0], [1.0], [1]).tpot_s[0])
    assert Measured(source="a", requests=requests([1.0], [1.0], [1])).statistics("tpot_s") == {}
