"""The table of errors that answers state: from held-out rows alone, class by class, in the form that they look up."""

import json

import numpy as np
import pytest

from kvsim.cli.main import main
from kvsim.study.validation.expected import FEWEST_RUNS, expected_errors
from kvsim.study.validation.scores import Scored
from kvsim.study.validation.validate import sample_folder


def scored(errors, gpu="H100", kind="dense", engine="vllm 0.19", family="tpot"):
    count = len(errors)
    return Scored(
        source="e2e_serving.csv", gpu=gpu, family=family, kind=kind, labels=["one"] * count, engines=[engine] * count,
        rows=[""] * count, measured=np.ones(count), predicted=1 + np.array(errors), datasheet=np.ones(count),
        linear=np.ones(count),
    )  # fmt: skip


def classes(*parts, unseen="model"):
    return expected_errors({unseen: parts}, [], {})["classes"]


def test_a_class_has_the_median_and_the_90th_percentile_of_its_rows():
    off = np.linspace(-0.1, 0.3, 41)
    (one,) = classes(scored(off))
    size = np.abs(off)
    assert one["tpot"] == {
        "n": 41,
        "median": round(float(np.median(size)), 3),
        "p90": round(float(np.quantile(size, 0.9)), 3),
        "bias": 0.1,
    }
    assert one["ttft"] is None
    assert (one["gpu"], one["kind"], one["engine"]) == ("H100-SXM", "dense", "vllm")


def test_releases_of_an_engine_are_one_class_and_kinds_of_models_two():
    many = [0.1] * FEWEST_RUNS
    found = classes(scored(many), scored(many, engine="vllm 0.24"), scored(many, kind="moe"))
    assert [(one["kind"], one["tpot"]["n"]) for one in found] == [("dense", 2 * FEWEST_RUNS), ("moe", FEWEST_RUNS)]


def test_unseen_gpus_are_one_class_whichever_they_were():
    many = [0.1] * FEWEST_RUNS
    (one,) = classes(scored(many), scored(many, gpu="B200"), unseen="gpu")
    assert (one["gpu"], one["gpus"]) == (None, ["B200-SXM", "H100-SXM"])


def test_too_few_rows_are_no_class():
    assert classes(scored([0.1] * (FEWEST_RUNS - 1))) == []


def test_kernels_and_whole_batches_are_no_step_times():
    assert classes(scored([0.1] * 20, family="linear:bf16"), scored([0.1] * 20, family="offline_throughput")) == []


@pytest.fixture
def written(tmp_path):
    path = tmp_path / "expected.json"
    assert main(["validate", "--data", str(sample_folder()), "--expected", str(path), "--json"]) == 0
    return json.loads(path.read_text())


def test_validate_writes_the_table_with_the_hash_of_each_input(written, capsys):
    assert written["written_by"] == "kvsim validate --expected"
    assert set(written["provenance"]["inputs_sha256"]) >= {"e2e_serving.csv", "kernel_gemm.csv"}
    assert {(one["timing"], one["unseen"]) for one in written["classes"]} >= {
        ("calibrated", "model"), ("calibrated", "engine"), ("roofline", "everything"),
    }  # fmt: skip


def test_a_folder_without_served_runs_is_refused(tmp_path, capsys):
    (tmp_path / "kernel_gemm.csv").write_text((sample_folder() / "kernel_gemm.csv").read_text())
    assert main(["validate", "--data", str(tmp_path), "--expected", str(tmp_path / "out.json")]) == 2
    assert "no served run was scored" in capsys.readouterr().err
    assert not (tmp_path / "out.json").exists()
