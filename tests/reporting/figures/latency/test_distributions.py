"""Curves of latencies go through the percentiles of the metrics, and goals stand where `slo` puts them."""

import numpy as np
import pytest

from kvsim.reporting.figures.latency.distributions import LATENCIES, has_latencies, latencies, latencies_of
from tests.fake_results import fake_result
from tests.reporting.figures.small_runs import pressed


def marks(axes):
    """The dots of each line, in the order of the results."""
    return [line.get_xdata() for line in axes.lines if line.get_marker() == "o"]


def test_dots_are_the_median_and_the_99th_percentile_of_the_metrics():
    results = pressed()
    figure = latencies(results)
    for axes, (name, (_, _, scale)) in zip(figure.axes, LATENCIES.items(), strict=True):
        for result, found in zip(results, marks(axes), strict=True):
            spread = result.metrics[name]
            assert found == pytest.approx([scale * spread["p50"], scale * spread["p99"]])


def test_a_curve_rises_from_no_request_to_all_of_them():
    for axes in latencies(pressed()).axes:
        for line in axes.lines:
            if line.get_marker() != "o" and line.get_label() != "goal":
                share = line.get_ydata()
                assert (share[0], share[-1]) == (0, 100)
                assert (np.diff(line.get_xdata()) >= 0).all()


def test_goals_are_dashed_lines_where_all_have_the_same():
    ttft, tpot, e2e = latencies(pressed()).axes
    assert [line.get_xdata()[0] for line in ttft.lines if line.get_label() == "goal"] == [2.0]
    assert [line.get_xdata()[0] for line in tpot.lines if line.get_label() == "goal"] == [60.0]
    assert not [line for line in e2e.lines if line.get_label() == "goal"]


def test_requests_outside_the_window_or_without_a_token_do_not_count():
    result = fake_result()
    result.metrics["window_s"] = [2.0, 5.0]
    found = latencies_of(result)
    inside = [at for at in result.tables["requests"]["arrival_s"] if 2.0 <= at <= 5.0]
    rejected = sum(end == "rejected" for end in result.tables["requests"]["end"][20:51])
    assert len(found["ttft_s"]) == len(found["e2e_s"]) == len(inside) - rejected
    assert rejected == 1


def test_where_nobody_got_a_token_there_is_no_figure():
    result = fake_result()
    result.metrics["ttft_s"] = None
    assert not has_latencies([result])
    with pytest.raises(ValueError, match="got tokens"):
        latencies([result])
