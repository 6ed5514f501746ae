"""The records of every verb that a report is made of."""

import pytest

from kvsim.reporting.question.answer import measured
from kvsim.reporting.question.numbers import numbers_of

SHARES = {
    "used": 0.3,
    "reserved": 0.1,
    "internal": 0,
    "dead": 0,
    "moving": 0,
    "cached": 0.2,
    "external": 0,
    "free": 0.4,
}


def test_a_comparison_has_each_variants_metrics_and_its_waste():
    record = {"variants": [{"name": "paged", "metrics": {"mean_running": 4.5, "mean_share": SHARES}}]}
    numbers = numbers_of(record)
    assert measured("paged: mean_running", numbers) == 4.5
    assert measured("paged: mean_share.cached %", numbers) == 20
    assert measured("paged: waste_share %", numbers) == pytest.approx(25)


def test_a_sweep_has_the_means_of_each_point_and_counts_stay_counts():
    spread = {"mean": 2.0, "min": 2, "max": 2}
    metrics = {"preemptions": spread, "ttft_s.p50": {"mean": 0.3, "min": 0.2, "max": 0.4}, "hit_rate": None}
    record = {
        "axes": [],
        "points": [
            {"variant": None, "changes": {"workload.rate": "2/s"}, "metrics": metrics},
            {"variant": "cached", "changes": {"workload.rate": "2/s", "seed": 1}, "metrics": metrics},
        ],
    }
    numbers = numbers_of(record)
    assert list(numbers) == ["2/s", "cached 2/s 1"]
    assert numbers["2/s"] == {"preemptions": 2, "ttft_s.p50": 0.3}
    assert isinstance(numbers["2/s"]["preemptions"], int)
    assert measured("cached 2/s 1: ttft_s.p50 ms", numbers) == 300


def test_a_hit_curve_has_its_sizes_its_ideal_and_what_lru_needs():
    policies = {"lru": {"hit_rate_blocks": 0.1, "share_of_ideal": 0.25}}
    record = {
        "ideal": {"hit_rate_blocks": 0.4},
        "ideal_full_blocks": None,
        "lru_needs": {"0.5": {"tokens": 512}},
        "points": [{"size": {"blocks": 16}, "policies": policies}],
    }
    numbers = numbers_of(record)
    assert measured("16 blocks: lru.share_of_ideal %", numbers) == 25
    assert measured("ideal: hit_rate_blocks %", numbers) == 40
    assert measured("0.5 of the ideal: tokens", numbers) == 512


def test_a_validation_counts_the_goals_that_are_met():
    targets = [
        {"goal": "TPOT, unseen model", "met": True, "reached": {"median_abs_error": 0.1}},
        {"goal": "TPOT, unseen GPU", "met": False, "reached": {"median_abs_error": 0.2}},
    ]
    numbers = numbers_of({"rows": 9, "scored_rows": 8, "summary": {"targets": targets}})
    assert (numbers["goals"], numbers["rows"]) == ({"all": 2, "met": 1}, {"all": 9, "scored": 8})
    assert measured("TPOT, unseen GPU: median_abs_error %", numbers) == 20


def test_a_record_of_another_form_is_refused():
    with pytest.raises(ValueError, match="keys \\['something'\\]"):
        numbers_of({"something": 1})
