"""`kvsim validate` and `kvsim calibrate fit`: what they print, write and refuse."""

import json
import shutil

import pytest

from kvsim.cli.main import main
from kvsim.study.validation.validate import sample_folder


def test_validate_prints_groups_and_what_it_skipped_as_json(tmp_path, capsys):
    shutil.copy(sample_folder() / "kernel_attn_decode.csv", tmp_path)
    assert main(["validate", "--data", str(tmp_path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["groups"]
    assert found["skipped"] == []


def test_validate_prints_scores_for_people_and_writes_the_report(tmp_path, capsys):
    shutil.copy(sample_folder() / "kernel_gemm.csv", tmp_path)
    assert main(["validate", "--data", str(tmp_path), "-o", str(tmp_path / "report")]) == 0
    out = capsys.readouterr().out
    assert "Unseen shapes and models" in out
    assert "108 of 108 rows scored" in " ".join(out.split())
    assert (tmp_path / "report" / "validation.png").stat().st_size > 10_000


def test_calibrate_writes_a_file_with_errors_ranges_and_hashes(tmp_path, capsys):
    target = tmp_path / "mine.json"
    assert main(["calibrate", "fit", str(sample_folder()), "-o", str(target)]) == 0
    found = json.loads(target.read_text())
    one = found["gpus"]["H100-SXM"]["linear:bf16"]
    assert one["fitted_range"]["n"] == [2048, 12288]
    assert one["parameters"]["bandwidth_share"]["standard_error"] > 0
    assert "H100-SXM" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("head", "line", "said"),
    [
        ("gpu,gemm_dtype,m,n,k", "h100_sxm,fp8,1,1,1", "has no column latency_ms"),
        ("gpu,gemm_dtype,m,n,k,latency_ms", "h100_sxm,fp8,1,1024,1024,-1", "latency_ms is -1"),
        ("gpu,gemm_dtype,m,n,k,latency_ms", "h100_sxm,fp8,1,1024,1024,0.01", "a fit needs at least 8"),
    ],
)
def test_a_bad_table_is_one_message_and_exit_2(tmp_path, capsys, head, line, said):
    (tmp_path / "kernel_gemm.csv").write_text(f"{head}\n{line}\n")
    assert main(["calibrate", "fit", str(tmp_path), "-o", str(tmp_path / "out.json")]) == 2
    message = capsys.readouterr().err
    assert said in message
    assert "kernel_gemm.csv" in message
    assert not (tmp_path / "out.json").exists()


def test_mixed_devices_are_exit_2(tmp_path, capsys):
    shutil.copy(sample_folder() / "kernel_gemm.csv", tmp_path)
    assert main(["calibrate", "fit", str(tmp_path), "--gpu", "H100", "-o", str(tmp_path / "out.json")]) == 2
    assert "mixes the devices a100_sxm, h100_sxm" in capsys.readouterr().err


def test_an_absent_folder_is_exit_2(capsys):
    assert main(["validate", "--data", "no/such/folder"]) == 2
    assert "is no folder" in capsys.readouterr().err
