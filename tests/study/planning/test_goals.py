"""Goals: read as people write them, met or not by what a run gave."""

import pytest

from kvsim.errors import InputError
from kvsim.study.planning.goals import goals_of, unmet
from tests.fake_results import fake_result


def test_goals_are_read_in_seconds_and_shares():
    found = goals_of("ttft_p99<1s, tpot_p95 < 50ms,rejected<0.1%, goodput>95%")
    assert [(goal.name, goal.limit, goal.above) for goal in found] == [
        ("ttft_p99", 1.0, False),
        ("tpot_p95", 0.05, False),
        ("rejected", 0.001, False),
        ("goodput", 0.95, True),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "--slo: is empty"),
        ("fast", "'fast' is no goal; write NAME<LIMIT"),
        ("ttft_p98<1s", "ttft_p98: is nothing that goals are about; did you mean ttft_p9"),
        ("ttft_p99<1", "--slo: ttft_p99: 1 has no unit"),
        ("ttft_p99<0s", "nothing is below 0s"),
        ("ttft_p99>1s", "asks for the worse; write ttft_p99<1s"),
        ("goodput<5%", "asks for the worse; write goodput>95%"),
        ("rejected<200%", "--slo: rejected: 200% is not a share"),
        ("ttft_p99<1s,ttft_p99<2s", "ttft_p99: is given twice"),
    ],
)
def test_what_is_no_goal_is_refused(text, said):
    with pytest.raises(InputError) as error:
        goals_of(text)
    assert said in str(error.value)


def test_a_goal_is_met_by_the_metric_that_it_names():
    metrics = fake_result().metrics
    value = metrics["ttft_s"]["p99"]
    above, below = goals_of(f"ttft_p99<{value * 1.01}s")[0], goals_of(f"ttft_p99<{value * 0.99}s")[0]
    assert above.value(metrics) == value
    assert above.meets(value)
    assert not below.meets(value)
    assert unmet([above, below], [value, value]) == [below]


def test_shares_are_of_what_arrived_and_goodput_of_what_finished():
    metrics = {"arrived": 200, "rejected": 3, "goodput_per_s": 1.8, "requests_per_s": 2.0}
    rejected, goodput = goals_of("rejected<1%,goodput>80%")
    assert rejected.value(metrics) == 0.015
    assert not rejected.meets(0.015)
    assert goodput.value(metrics) == pytest.approx(0.9)
    assert goodput.meets(0.9)


def test_outputs_of_one_token_have_no_gaps_and_keep_every_goal_on_them_as_in_goodput():
    served = {"e2e_s": {"mean": 0.1}, "tpot_s": None, "itl_s": None}
    for goal in goals_of("tpot_p99<50ms,itl_max<1s"):
        assert goal.meets(goal.value(served))
        assert not goal.meets(goal.value({**served, "e2e_s": None}))


def test_a_goal_about_nobody_is_not_met():
    [goal] = goals_of("ttft_p99<1s")
    assert goal.value({"ttft_s": None}) is None
    assert not goal.meets(None)
