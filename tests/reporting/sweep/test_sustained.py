"""Which points are saturated, and the largest rate that is sustained at each setting."""

import pytest

from kvsim.reporting.sweep.points import At, every_point
from kvsim.reporting.sweep.sustained import sentences, sustained
from kvsim.scenario.messages import Origin
from kvsim.scenario.resolve import Scenario
from kvsim.study.sweeps.points import grid
from kvsim.study.sweeps.sweep import planned, sweep
from tests.study.sweeps.small import SCENARIO

GRID = Origin("list", "grid")


def row(saturated=False, growth=0.0, error=0.05, good=5.0, finished=5.0, rejected=0):
    return {
        "saturated": saturated,
        "queue_growth": growth,
        "queue_growth_error": error,
        "goodput_per_s": good,
        "requests_per_s": finished,
        "rejected": rejected,
        "aborted": 0,
    }


def answers(verdicts, others=None):
    """What is said of a sweep of rates 1/s, 2/s, ... whose runs have these rows, failed or not."""
    rates = [f"{number}/s" for number in range(1, len(verdicts) + 1)]
    whole = planned([Scenario.from_dict(SCENARIO)], grid({"workload.rate": rates} | (others or {}), GRID))
    points = [
        At(one.variant, one.changes, [given] if given else [], 0 if given else 1)
        for one in every_point(whole)
        for given in [verdicts[rates.index(one.changes["workload.rate"])]]
    ]
    return sentences(sustained(whole, points), points)


BAD = row(good=4.9)
OPENING = "Sustained with 99 % within the goals of slo"


@pytest.mark.parametrize(
    ("verdicts", "said"),
    [
        ([row(), row(), BAD], "2/s is kept, 3/s is not."),
        ([row(), row(saturated=True), row()], "1/s is kept, 2/s is not."),
        ([BAD, row()], "1/s is not kept, nor is more."),
        ([row(), row()], "2/s is kept; more was not tried."),
        ([row(), row(rejected=1)], "1/s is kept, 2/s is not."),
        ([row(), None], "1/s is kept, runs fail at 2/s."),
        ([None, row()], "runs fail at 1/s."),
    ],
)
def test_the_largest_rate_below_all_that_are_not_kept_is_told(verdicts, said):
    assert answers(verdicts) == [f"{OPENING}: {said}"]


def test_each_other_setting_has_its_own_rate():
    told = answers([row(), BAD], {"pool.tokens": [4096, 8192]})
    assert told == [f"{OPENING} at pool.tokens={tokens}: 1/s is kept, 2/s is not." for tokens in (4096, 8192)]


def test_nothing_is_told_where_windows_show_no_steady_state():
    assert answers([row(), row(saturated=None, growth=None)]) == []


def test_replications_are_judged_together():
    def saturated(*growths):
        return At(None, {}, [row(saturated=growth > 0.03, growth=growth) for growth in growths], 0).saturated

    assert saturated(0.2, 0.25, 0.22)
    assert not saturated(0.2, -0.1, 0.01)
    assert saturated(0.2)
    assert At(None, {}, [], 1).saturated is None


def test_a_sweep_says_which_of_its_rates_are_too_high():
    workload = SCENARIO["workload"] | {"requests": 400}
    slo = {"slo": {"ttft": "2s", "tpot": "100ms"}}
    whole = sweep(SCENARIO | slo | {"workload": workload}, grid={"workload.rate": ["2/s", "40/s"]}, jobs=1)
    points = every_point(whole)
    assert [at.saturated for at in points] == [False, True]
    assert sentences(sustained(whole, points), points) == [f"{OPENING}: 2/s is kept, 40/s is not."]
    assert whole.rows[1]["queue_growth"] > 0.3
    assert all(came["expected_error"]["basis"] for came in whole.outcomes.values())
