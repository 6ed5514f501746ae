"""Recorded runs in a folder of measurements: replayed where they can be, told of where they cannot."""

import json

import pytest

from kvsim.cli.main import main
from kvsim.errors import InputError
from kvsim.study.validation.recorded import recorded_runs
from kvsim.study.validation.validate import validate
from tests.study.recorded.conftest import META, write_run


def put(folder, card="rtx4090", **change):
    meta, requests = write_run(folder, META | change)
    meta.rename(folder / f"vllm_run_{card}_small_meta.json")
    requests.rename(folder / f"vllm_run_{card}_small_requests.csv")


def test_a_folder_of_a_recorded_run_alone_is_replayed_and_nothing_else_is_scored(tmp_path):
    put(tmp_path)
    found = validate(tmp_path)
    (run,) = found["recorded_runs"]
    assert run["name"] == "vllm_run_rtx4090_small"
    assert run["rows"]["tpot_s.mean"]["simulated"] > 0
    assert (found["groups"], found["rows"], found["not_scored_here"]) == ([], 0, [])


def test_the_name_of_the_file_says_the_card_where_the_server_did_not(tmp_path):
    put(tmp_path, "rtxpro6000", hardware=None)
    ((run,), left) = recorded_runs(tmp_path)
    assert run.result.scenario_resolved["gpu"]["value"] == "rtxpro6000"
    assert left == []


@pytest.mark.parametrize(
    ("change", "said"), [({"model": "acme/nobody-7b"}, "nobody-7b"), ({"vllm_version": "?"}, "is no version")]
)
def test_a_run_that_cannot_be_replayed_is_told_with_its_reason(tmp_path, change, said):
    put(tmp_path, **change)
    runs, (reason,) = recorded_runs(tmp_path)
    assert runs == []
    assert said in reason
    with pytest.raises(InputError, match="holds no table"):
        validate(tmp_path)


def test_requests_without_their_description_are_told_too(tmp_path):
    put(tmp_path)
    (tmp_path / "vllm_run_rtx4090_small_meta.json").unlink()
    assert "cannot be read" in recorded_runs(tmp_path)[1][0]


def test_the_report_has_a_section_and_a_figure_of_each_run(tmp_path, capsys):
    data, target = tmp_path / "data", tmp_path / "report"
    data.mkdir()
    put(data)
    assert main(["validate", "--data", str(data), "-o", str(target)]) == 0
    assert "replayed vllm_run_rtx4090_small: mean TTFT" in " ".join(capsys.readouterr().out.split())
    report = (target / "README.md").read_text()
    assert "## Recorded runs, replayed" in report
    assert "![vllm_run_rtx4090_small: measured and simulated](recorded_rtx4090_small.png)" in report
    assert (target / "recorded_rtx4090_small.png").stat().st_size > 10_000
    assert str(tmp_path) not in (target / "validation.json").read_text()
    assert json.loads((target / "validation.json").read_text())["recorded_runs"][0]["name"] == "vllm_run_rtx4090_small"
