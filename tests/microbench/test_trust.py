"""What may not be fitted: one test for each kind of bad file, and what may pass when asked to."""

import pytest

from kvsim.errors import InputError
from kvsim.microbench.fit.fit import fit_results
from kvsim.microbench.fit.trust import OVERRIDES
from kvsim.microbench.results import read_results
from tests.microbench.oracle import Oracle, few, records, write

GPU = Oracle("NVIDIA H200", 132)


@pytest.fixture
def good():
    """A run as a GPU would write it."""
    env, *rows = few(records(GPU))
    return [{**env, "backend": "cuda"}, *rows]


def refusal(tmp_path, rows, accepted=()):
    path = write(tmp_path / "results.jsonl", rows)
    with pytest.raises(InputError) as caught:
        fit_results(read_results(path), accepted=accepted)
    message = str(caught.value)
    assert "results.jsonl" in message
    assert "\n" not in message
    return message


def accepted(tmp_path, rows, *what):
    return fit_results(read_results(write(tmp_path / "results.jsonl", rows)), accepted=what).calibration.about


def first(rows, **wanted):
    return next(at for at, row in enumerate(rows) if all(row.get(key) == value for key, value in wanted.items()))


@pytest.mark.parametrize("backend", ["emulated", "fake"])
def test_times_of_no_gpu_are_refused_unless_accepted(tmp_path, good, backend):
    good[0]["backend"] = backend
    assert "no GPU took these times" in refusal(tmp_path, good)
    assert accepted(tmp_path, good, "emulated")["accepted"] == ["emulated"]


def test_a_fake_device_is_refused_whatever_its_backend_says(tmp_path, good):
    good[0]["device"] = "fake"
    assert "on device 'fake'" in refusal(tmp_path, good)


def test_a_wrong_result_is_refused_with_its_line(tmp_path, good):
    at = first(good, role="fit", bench="decode_attn")
    good[at]["verified"] = False
    assert f"line {at + 1}: decode_attn" in refusal(tmp_path, good, tuple(OVERRIDES))


def test_a_kernel_that_was_not_checked_is_refused(tmp_path, good):
    good[first(good, role="fit", bench="gemm")]["verified"] = None
    assert "not checked" in refusal(tmp_path, good)
    assert accepted(tmp_path, good, "unchecked")["accepted"] == ["unchecked"]


def test_an_operation_that_computes_nothing_needs_no_check(tmp_path, good):
    for row in good:
        if row.get("bench") in ("launch", "alloc", "h2d"):
            row["verified"] = None
    assert accepted(tmp_path, good)["accepted"] == []


@pytest.mark.parametrize(
    ("field", "value", "what"),
    [
        ("device", "NVIDIA A100-SXM4-80GB", "devices"),
        ("uuid_hash", "f" * 16, "devices"),
        ("source_sha256", "cd" * 32, "sources"),
        ("build_arch", "sm_80", "builds"),
        ("driver", "570", "builds"),
    ],
)
def test_runs_that_do_not_belong_together_are_refused(tmp_path, good, field, value, what):
    again = [{**good[0], field: value}, *good[1:]]
    message = refusal(tmp_path, good + again, ("emulated", "drift", "few-points", "cut-short"))
    assert f"mixes {what}: {field}" in message


def test_two_runs_of_one_gpu_and_build_are_fitted_together(tmp_path, good):
    points = accepted(tmp_path, good + good)["points"]
    assert points["fit"] == 2 * accepted(tmp_path, good)["points"]["fit"]


def test_an_anchor_that_drifted_is_refused_unless_accepted(tmp_path, good):
    anchors = [at for at, row in enumerate(good) if row.get("role") == "anchor" and row["bench"] == "gemm"]
    for name in ("median_s", "p10_s", "p90_s"):
        good[anchors[-1]][name] *= 1.05
    assert "gemm bf16: m 4096, n 4096, k 4096 drifted by 5.0 %" in refusal(tmp_path, good)
    assert accepted(tmp_path, good, "drift")["accepted"] == ["drift"]


def test_a_drift_that_a_steady_gpu_shows_too_passes(tmp_path, good):
    anchors = [at for at, row in enumerate(good) if row.get("role") == "anchor" and row["bench"] == "gemm"]
    for name in ("median_s", "p10_s", "p90_s"):
        good[anchors[-1]][name] *= 1.02
    assert accepted(tmp_path, good)["anchor_drift"]["gemm bf16: m 4096, n 4096, k 4096"] == pytest.approx(0.02)


def test_a_run_without_its_end_is_refused_unless_accepted(tmp_path, good):
    assert "cut short" in refusal(tmp_path, good[:-1])
    assert accepted(tmp_path, good[:-1], "cut-short")["accepted"] == ["cut-short"]


def test_an_end_that_counts_other_points_is_refused(tmp_path, good):
    del good[5]
    assert "take the whole file" in refusal(tmp_path, good, ("cut-short",))


def test_a_family_with_too_few_points_is_refused_or_left_out(tmp_path, good):
    kept = [row for row in good if row.get("bench") != "prefill_attn" or row["params"].get("prefix") == 4096]
    kept[-1]["points"] = sum(row["type"] == "point" for row in kept)
    assert "causal_attention:bf16 has" in refusal(tmp_path, kept)
    assert list(accepted(tmp_path, kept, "few-points")["left_out"]) == ["causal_attention:bf16"]


def test_one_shape_measured_often_is_one_shape(tmp_path, good):
    at = first(good, bench="launch", role="fit")
    kept = [row for row in good if row.get("bench") != "launch"]
    kept[-1:-1] = [good[at]] * 5
    kept[-1]["points"] = sum(row["type"] == "point" for row in kept)
    assert "1 different shapes for 2 parameters" in refusal(tmp_path, kept)


def test_a_gpu_without_a_data_sheet_is_refused_with_what_to_say(tmp_path, good):
    good[0]["device"] = "NVIDIA H900"
    assert "--gpu NAME says which" in refusal(tmp_path, good)
    path = write(tmp_path / "results.jsonl", good)
    assert fit_results(read_results(path), gpu_name="H200").calibration.gpus == ("H200-SXM",)
