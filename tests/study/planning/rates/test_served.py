"""Costs by the million are of the traffic that is sent, whatever the measured window; where it is not served, of what
came out."""

import pytest

from kvsim import Scenario
from kvsim.study.planning.goals import goals_of
from kvsim.study.planning.rates.sustained import tried
from tests.study.planning.small import SCENARIO

GOALS = goals_of("ttft_p99<1h")


def trial(rate, **workload):
    whole = {**SCENARIO, "gpu": "A100-SXM-80GB", "workload": {**SCENARIO["workload"], **workload}}
    [one] = tried(Scenario.from_dict(whole), [rate], GOALS, replications=2)
    return one


def per_million(one, per_s):
    return pytest.approx(one.mean("cost", "usd_per_hour") / 3600 / per_s * 1e6)


@pytest.mark.parametrize("requests", [20, 80])
def test_tokens_are_those_of_the_traffic_whatever_the_number_of_requests(requests):
    one = trial(8.0, requests=requests, output_tokens=50)
    assert (one.served.output_tokens_per_s, one.served.requests_per_s) == (400.0, 8.0)
    assert one.cost("usd_per_million_output_tokens") == per_million(one, 400.0)
    assert one.cost("usd_per_million_requests") == per_million(one, 8.0)
    assert one.cost("usd_per_hour") == one.mean("cost", "usd_per_hour")


def test_the_rate_of_sessions_counts_all_their_requests():
    one = trial(2.0, requests=36, output_tokens=50, sessions={"turns": 3})
    assert one.served.requests_per_s == pytest.approx(6.0)
    assert one.served.output_tokens_per_s == pytest.approx(300.0)


def test_what_is_refused_costs_no_token_less():
    """Prompts beyond the longest context are rejected; those near it have fewer than 50 tokens of output."""
    lengths = {"distribution": "uniform", "min": 1, "max": 4000}
    one = trial(8.0, requests=40, output_tokens=50, prompt_tokens=lengths)
    assert 0 < one.served.requests_per_s < 8.0
    assert 0.9 * 50 * one.served.requests_per_s < one.served.output_tokens_per_s < 50 * one.served.requests_per_s


def test_where_the_queue_grows_costs_are_of_what_came_out():
    one = trial(400.0, requests=400)
    assert one.saturated
    assert one.served is None
    assert one.cost("usd_per_million_output_tokens") == one.mean("cost", "usd_per_million_output_tokens")
