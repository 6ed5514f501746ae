"""The cost model against published measurements, on shapes, models and GPUs that it was not fitted to."""

import os
from functools import cache
from pathlib import Path

import pytest

from kvsim.study.validation.validate import sample_folder, validate

pytestmark = pytest.mark.oracle

REACHED = {
    "linear layers, unseen shapes on fitted GPUs": "p95 23 %, not 20 (median 5.4, met): on B200 8-bit layers of some "
    "shapes take two to three times as long as those of the next size on either side (p95 50 %), and on L40S those "
    "about as large as its cache (34 %); all other tables reach 16 to 24 %",
    "decode attention, unseen GPU": "median 21 %, not 15: most rows are small, where the kernel's generation rules, "
    "which no data sheet tells (costs per block differ by 2.7 between A100 and B200)",
    "prefill attention, unseen GPU": "median 18 %, not 15: shares of the peak and of the causal part trade against "
    "one another, and the medians of each do not",
}
"""Goals that are not reached, with the distance and the reason; each is a failing expectation below."""


@cache
def everything():
    folder = os.environ.get("KVSIM_DATA")
    if not folder:
        pytest.skip("KVSIM_DATA names no folder of measurements")
    return validate(Path(folder))


GOALS = [
    "decode attention, unseen head shapes on fitted GPUs",
    "linear layers, unseen shapes on fitted GPUs",
    "prefill attention, unseen head shapes on fitted GPUs",
    "whole decode step from its parts on A100 (70B, unseen model and batch)",
    "a layer without attention on A100, unseen model",
    "a layer without attention on H100, unseen model",
    "a layer without attention, unseen GPU",
    "TPOT of dense models, unseen model",
    "TPOT of MoE models, unseen model",
    "offline throughput, unseen model",
    "decode attention, unseen GPU",
    "linear layers, unseen GPU",
    "prefill attention, unseen GPU",
    "TPOT of dense models, unseen GPU",
    "TPOT of MoE models, unseen GPU",
]


@pytest.mark.slow
@pytest.mark.parametrize(
    "goal",
    [
        pytest.param(goal, marks=pytest.mark.xfail(strict=True, reason=REACHED[goal])) if goal in REACHED else goal
        for goal in GOALS
    ],
)
def test_a_goal_is_met_on_rows_that_were_held_out(goal):
    (entry,) = [one for one in everything()["summary"]["targets"] if one["goal"] == goal]
    assert entry["met"], entry["reached"]


@pytest.mark.slow
def test_at_least_95_percent_of_the_shared_rows_are_scored():
    found = everything()
    assert found["scored_rows"] >= 0.95 * found["rows"]


@pytest.mark.slow
def test_both_baselines_are_beaten_for_most_rows():
    groups = everything()["summary"]["unseen_model"]
    better = [
        one
        for one in groups
        if all(
            one[name] is None or one["median_abs_error"] < one[name]
            for name in ("baseline_datasheet_median", "baseline_linear_median")
        )
    ]
    assert sum(one["n"] for one in better) > 0.9 * sum(one["n"] for one in groups)


def test_the_committed_rows_are_predicted_from_others():
    """Measured: linear 5.4 %, decode attention 5.7 %, TPOT of dense models 7 % in the median."""
    found = {(one["family"], one["kind"]): one for one in validate(sample_folder())["summary"]["unseen_model"]}
    assert found["linear:bf16", "kernel"]["median_abs_error"] < 0.09
    assert found["decode_attention:bf16", "kernel"]["median_abs_error"] < 0.09
    assert found["tpot", "dense"]["median_abs_error"] < 0.15
