"""Validation scores what was held out, beside two baselines, and its gates can fail."""

import pytest

from kvsim.errors import InputError
from kvsim.microbench.fit.fit import device_of, fit_results
from kvsim.microbench.results import read_results
from kvsim.microbench.validation.validate import validate
from kvsim.timing.fitting.calibration import shipped
from tests.microbench.oracle import Oracle, records, write

GPU = Oracle("NVIDIA H200", 132)


def scores(path, rows):
    results = read_results(write(path, rows))
    calibration = fit_results(results, accepted=("emulated",)).calibration
    return validate(calibration, results, device_of(results, None))


def slower(rows, factor, **wanted):
    for row in rows:
        if all(row.get(key) == value for key, value in wanted.items()):
            row |= {key: factor * row[key] for key in ("median_s", "p10_s", "p90_s")}
    return rows


@pytest.fixture(scope="module")
def noisy(tmp_path_factory):
    return scores(tmp_path_factory.mktemp("v") / "r.jsonl", list(records(GPU, scatter=0.02, unlike=0.02)))


def test_held_out_operations_of_an_oracle_meet_every_gate(noisy):
    assert all(gate["met"] for gate in noisy["gates"])
    assert {one["bench"] for one in noisy["families"]} == {
        "gemm", "decode_attn", "prefill_attn", "step graph", "step eager"
    }  # fmt: skip


def test_the_fit_beats_both_baselines(noisy):
    for one in noisy["families"]:
        assert one["mean_abs_error"] < one["baseline_datasheet_mean"], one["bench"]
        assert one["mean_abs_error"] < one["baseline_line_mean"], one["bench"]


def test_every_held_out_point_is_scored_once_and_no_other(noisy):
    counted = {one["bench"]: one["n"] for one in noisy["families"]}
    rows = list(records(GPU))
    for bench in ("gemm", "decode_attn", "prefill_attn"):
        assert counted[bench] == sum(row.get("bench") == bench and row["role"] == "holdout" for row in rows)
    assert counted["step graph"] + counted["step eager"] == sum(row.get("bench") == "step" for row in rows)


def test_the_five_worst_points_come_first_and_are_named(noisy):
    worst = noisy["families"][0]["worst"]
    assert len(worst) == 5
    errors = [abs(one["error"]) for one in worst]
    assert errors == sorted(errors, reverse=True)
    assert errors[0] == noisy["families"][0]["worst_abs_error"]
    assert "gemm bf16: m " in worst[0]["point"]


def test_predictions_lie_within_the_spread_of_points_that_scatter_as_much_as_they_are_off(noisy):
    assert 0.4 < noisy["families"][0]["within_spread"] < 0.95


def test_what_steps_take_beside_their_kernels_is_told_and_not_used(tmp_path):
    found = scores(tmp_path / "r.jsonl", list(records(GPU)))
    assert found["missing_us_per_layer"]["graph"] == pytest.approx(3.0, rel=0.01)
    step = next(one for one in found["families"] if one["bench"] == "step graph")
    assert step["bias"] < 0  # the sum of the kernels falls short by just that


def test_steps_that_are_not_the_sum_of_their_kernels_fail_their_gates(tmp_path):
    found = scores(tmp_path / "r.jsonl", slower(list(records(GPU)), 1.3, bench="step"))
    missed = {(gate["bench"], gate["gate"]) for gate in found["gates"] if not gate["met"]}
    assert missed == {(bench, gate) for bench in ("step graph", "step eager") for gate in ("mean", "p90")}


def test_a_kernel_that_is_slower_on_unseen_shapes_fails_its_gate(tmp_path):
    found = scores(tmp_path / "r.jsonl", slower(list(records(GPU)), 1.2, bench="gemm", role="holdout"))
    assert [gate["bench"] for gate in found["gates"] if not gate["met"]] == ["gemm"]


def test_a_run_without_steps_is_not_validated(tmp_path):
    *rows, end = [row for row in records(GPU) if row.get("bench") != "step"]
    found = scores(tmp_path / "r.jsonl", [*rows, {**end, "points": len(rows) - 1}])
    assert {"bench": "step", "gate": "measured", "most": None, "reached": None, "met": False} in found["gates"]


def test_another_gpus_results_are_refused(tmp_path):
    results = read_results(write(tmp_path / "r.jsonl", records(GPU)))
    calibration = fit_results(results, accepted=("emulated",)).calibration
    with pytest.raises(InputError, match="the calibration is of H200-SXM"):
        validate(calibration, results, device_of(results, "A100"))


def test_a_wrong_held_out_result_is_refused(tmp_path):
    rows = list(records(GPU))
    next(row for row in rows if row.get("bench") == "step")["verified"] = False
    with pytest.raises(InputError, match="verified false"):
        scores(tmp_path / "r.jsonl", rows)


def test_fits_to_published_measurements_are_scored_on_a_gpus_own_results(tmp_path):
    results = read_results(write(tmp_path / "r.jsonl", records(Oracle("NVIDIA H100 80GB HBM3", 132))))
    found = validate(shipped(), results, device_of(results, None))
    fitted = {one["bench"]: one["fitted"] for one in found["families"]}
    assert fitted["gemm"] == "linear:bf16"
    assert fitted["decode_attn"] == "decode_attention:bf16"
    assert "step graph" in fitted
    assert not all(gate["met"] for gate in found["gates"])  # an oracle that is slower at prompts than an H100
