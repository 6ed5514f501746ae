"""The cliff's marks are where single runs say that they are."""

import pytest

from kvsim import Scenario, run
from kvsim.errors import InputError
from kvsim.study.planning.ask import where_is_the_cliff
from kvsim.study.planning.cliff import LEAVES
from tests.study.planning.small import AT, SCENARIO

TIGHT = {**SCENARIO, "pool": {"tokens": 4096}, "workload": {**SCENARIO["workload"], "requests": 120}}


def at(rate_per_s):
    return run(Scenario.from_dict(TIGHT).changed({"workload.rate": f"{rate_per_s!r}/s"}, AT)).metrics


def test_the_marks_lie_between_neighbouring_rates_whose_runs_differ_in_what_they_mark():
    cliff = where_is_the_cliff(TIGHT, replications=1, jobs=1)
    rates = [trial.rate_per_s for trial in cliff.trials]
    assert rates == sorted(set(rates))
    low = at(rates[0])["ttft_s"]["p99"]
    assert cliff.low_load_s == low
    beyond = rates[rates.index(cliff.knee_per_s) + 1]
    assert at(cliff.knee_per_s)["ttft_s"]["p99"] <= LEAVES * low < at(beyond)["ttft_s"]["p99"]
    onset = cliff.preemption_onset_per_s
    assert at(onset)["preemptions"] > 0
    assert at(rates[rates.index(onset) - 1])["preemptions"] == 0
    assert cliff.knee_per_s < cliff.blow_up_per_s <= cliff.saturated_from_per_s


def test_the_queue_blows_up_at_the_rate_that_an_overloaded_engine_serves():
    long = {**TIGHT, "workload": {**TIGHT["workload"], "requests": 400}}
    cliff = where_is_the_cliff(long, replications=1, jobs=1)
    over = {"workload.rate": f"{3 * cliff.blow_up_per_s!r}/s", "window": {"until": "saturated"}}
    served_per_s = run(Scenario.from_dict(long).changed(over, AT)).metrics["requests_per_s"]
    assert cliff.blow_up_per_s == pytest.approx(served_per_s, rel=0.05)


@pytest.mark.parametrize(
    "changes", [{"workload": {**TIGHT["workload"], "requests": 1}}, {"window": {"warmup": "1h"}}, {"horizon": "1ms"}]
)
def test_where_no_steady_state_shows_at_the_lowest_load_there_is_no_cliff(changes):
    with pytest.raises(InputError, match=r"not even at the lowest load, .*/s, do the runs show a steady state"):
        where_is_the_cliff({**TIGHT, **changes}, replications=1, jobs=1)


def test_one_candidate_has_a_cliff_and_traffic_that_has_a_rate():
    with pytest.raises(InputError, match=r"is for one candidate, and there are RTX-4090, L4; choose one"):
        where_is_the_cliff(TIGHT, choices={"gpu": ["RTX 4090", "L4"]})
    closed = {**TIGHT, "workload": {"clients": {"count": 4}, "requests": 20, "prompt_tokens": 50, "output_tokens": 10}}
    with pytest.raises(InputError, match=r"sweeps workload\.rate, and this traffic has none that could be set"):
        where_is_the_cliff(closed, jobs=1)
