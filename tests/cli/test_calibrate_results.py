"""`kvsim calibrate fit FILE`, `validate` and `export`: what they write and print, and every wrong input in one line."""

import csv
import json

import pytest

from kvsim.cli.main import main
from tests.microbench.oracle import Oracle, records, write


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return write(tmp_path_factory.mktemp("r") / "results.jsonl", records(Oracle("NVIDIA H200", 132), scatter=0.02))


@pytest.fixture(scope="module")
def calibration(results):
    path = results.parent / "h200.json"
    assert main(["calibrate", "fit", str(results), "-o", str(path), "--accept", "emulated"]) == 0
    return path


def refusal(capsys, *arguments):
    capsys.readouterr()
    assert main(["calibrate", *map(str, arguments)]) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    return message


def test_a_calibration_holds_values_errors_ranges_the_machine_and_the_input(calibration):
    found = json.loads(calibration.read_text())
    one = found["gpus"]["H200-SXM"]["gemm:bf16"]
    assert one["parameters"]["peak_tflop_s"]["value"] == pytest.approx(780, rel=0.02)
    assert one["parameters"]["peak_tflop_s"]["standard_error"] > 0
    assert one["parameters"]["peak_tflop_s"]["unit"] == "TFLOP/s"
    assert one["fitted_range"]["m"] == [1, 8192]
    assert found["about"]["env"]["sm_count"] == 132
    assert one["input_sha256"] == found["about"]["input_sha256"]


def test_fitting_prints_every_family_and_what_was_accepted(results, capsys, tmp_path):
    assert main(["calibrate", "fit", str(results), "-o", str(tmp_path / "c.json"), "--accept", "emulated"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "paged_attention" in said
    assert "accepted: emulated" in said
    assert "which no GPU took" in said


def test_figures_are_drawn_where_asked(results, tmp_path, capsys):
    arguments = ["-o", str(tmp_path / "c.json"), "--accept", "emulated", "--figures", str(tmp_path / "figures")]
    assert main(["calibrate", "fit", str(results), *arguments]) == 0
    assert (tmp_path / "figures" / "gemm.png").stat().st_size > 10_000


def test_emulated_times_are_refused_with_how_to_accept_them(results, tmp_path, capsys):
    message = refusal(capsys, "fit", results, "-o", tmp_path / "c.json")
    assert "no GPU took these times" in message
    assert "--accept emulated" in message
    assert not (tmp_path / "c.json").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("fit", "none.jsonl", "-o", "c.json"), "none.jsonl: cannot be read"),
        (("fit", "{results}", "-o", "c.json", "--accept", "emulated", "--gpu", "H900"), "--gpu: "),
        (("fit", "{results}", "-o", "c.json", "--engines", "e.json"), "--engines: "),
        (("fit", "{folder}", "-o", "c.json", "--figures", "f"), "--figures: "),
        (("validate", "{results}", "{results}"), "is no calibration"),
        (("validate", "{calibration}", "none.jsonl"), "none.jsonl: cannot be read"),
        (("validate", "{calibration}", "{results}", "--gpu", "A100"), "the calibration is of H200-SXM"),
        (("export", "none.jsonl"), "none.jsonl: cannot be read"),
    ],
)
def test_wrong_input_is_one_line(results, calibration, tmp_path, monkeypatch, capsys, arguments, said):
    monkeypatch.chdir(tmp_path)
    names = {"results": results, "calibration": calibration, "folder": results.parent}
    assert said in refusal(capsys, *(argument.format(**names) for argument in arguments))


def test_validation_prints_scores_gates_and_baselines(results, calibration, capsys):
    assert main(["calibrate", "validate", str(calibration), str(results)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "met: step graph: mean |error|" in said
    assert "Worst of gemm" in said
    assert "a roofline at the data sheet's rates" in said


def test_a_gate_that_is_missed_is_exit_1(results, calibration, capsys, tmp_path):
    slow = []
    for row in map(json.loads, results.read_text().splitlines()):
        if row.get("bench") == "step":
            row |= {name: 1.3 * row[name] for name in ("median_s", "p10_s", "p90_s")}
        slow.append(row)
    path = write(tmp_path / "slow.jsonl", slow)
    assert main(["calibrate", "validate", str(calibration), str(path), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert {gate["bench"] for gate in found["gates"] if not gate["met"]} == {"step graph", "step eager"}


def test_points_are_exported_as_a_table(results, tmp_path, capsys):
    assert main(["calibrate", "export", str(results), "-o", str(tmp_path / "points.csv")]) == 0
    with open(tmp_path / "points.csv", newline="") as file:
        table = list(csv.DictReader(file))
    assert len(table) == sum('"type": "point"' in line for line in results.read_text().splitlines())
    assert {row["backend"] for row in table} == {"emulated"}


def test_kernels_and_served_runs_are_scored_with_a_calibration_of_ones_own(calibration, capsys):
    from kvsim.study.validation.validate import sample_folder

    assert main(["validate", "--data", str(sample_folder()), "--calibration", str(calibration), "--json"]) == 0
    assert "no GPU took" in json.loads(capsys.readouterr().out)["provenance"]["calibration"]
    assert main(["validate", "--calibration", "none.json"]) == 2
    assert "none.json: cannot be read" in capsys.readouterr().err
