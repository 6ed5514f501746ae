"""`kvsim compare` with intervals: what it takes, prints and refuses."""

import json
from pathlib import Path

import pytest

from kvsim.cli.main import main

SCENARIO = """
name: two
model: llama-3.1-8b
gpu: RTX 4090
pool: {tokens: 4096}
engine: {max_model_len: 512}
workload:
  rate: 4/s
  requests: 40
  prompt_tokens: {distribution: uniform, min: 10, max: 200}
  output_tokens: {distribution: uniform, min: 5, max: 60}
variants:
  blocks: {allocator: paged}
  regions: {allocator: contiguous}
"""


TRACED = """
model: llama-3.1-8b
gpu: RTX 4090
pool: {tokens: 41408}
engine: {max_model_len: 8192}
workload: {trace: azure-conv-2023, requests: 60, rate: 4/s}
"""


@pytest.fixture(autouse=True)
def scenario(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "two.yaml").write_text(SCENARIO)


def said(capsys, *options):
    here = ["--jobs", "1"] if options and options[-1] not in ("2s", "1") else []
    assert main(["compare", "two.yaml", "--json", *options, *here]) == 0
    return json.loads(capsys.readouterr().out)


def test_one_replication_prints_what_it_always_did(capsys):
    plain = said(capsys)
    assert said(capsys, "--replications", "1") == plain
    assert "study" not in plain


def test_replications_are_the_same_on_any_workers(capsys):
    assert said(capsys, "--replications", "3", "--jobs", "2") == said(capsys, "--replications", "3", "--jobs", "1")


def test_replications_are_added_to_what_one_run_says(capsys):
    plain, whole = said(capsys), said(capsys, "--replications", "3", "--baseline", "regions")
    assert {key: whole[key] for key in plain} == plain
    study = whole["study"]
    assert (study["method"], study["samples"], study["baseline"]) == ("replications", 3, "regions")
    assert study["variants"][0]["metrics"]["e2e_s.mean"]["difference"]["verdict"] in ("worse", "not distinguishable")
    assert len(study["variants"][0]["metrics"]["e2e_s.mean"]["values"]) == 3


def test_people_see_intervals_verdicts_and_the_figure(capsys, tmp_path):
    assert main(["compare", "two.yaml", "--replications", "3", "--jobs", "2", "-o", "out"]) == 0
    out = capsys.readouterr().out
    assert max(len(line) for line in out.splitlines()) <= 80
    for part in (
        "regions against blocks: ",
        "3 replications of each variant",
        "to blocks  verdict",
        "E2E, mean, s",
        "±",
    ):
        assert part in out
    assert "6 runs simulated in" in out
    assert (tmp_path / "out" / "intervals.png").exists()
    assert (tmp_path / "out" / "blocks" / "requests.parquet").exists()


def test_long_names_stay_within_80_columns(capsys, monkeypatch):
    monkeypatch.setattr("kvsim.reporting.run_folder.write_comparison", lambda *given: [])
    options = ["--vary", "allocator.chunk=16,32", "--set", "allocator=contiguous", "--set", "window.warmup=1s"]
    Path("two.yaml").write_text(SCENARIO.partition("variants:")[0])
    options += ["--vary", "engine.max_num_batched_tokens=1024", "--replications", "2", "--jobs", "1"]
    assert main(["compare", "two.yaml", *options]) == 0
    out = capsys.readouterr().out
    assert max(len(line) for line in out.splitlines()) <= 80
    assert "to the baseline" in out
    assert "chunk=32 max_num_batched_tokens=1024 against chunk=16" in " ".join(out.split())


def test_a_warm_up_is_set_or_found(capsys):
    assert said(capsys, "--warmup", "2s")["variants"][0]["metrics"]["window_s"][0] == 2.0
    found = said(capsys, "--warmup", "mser")
    assert any("are left out as warm-up, by MSER-5" in note for note in found["variants"][0]["notes"])
    study = said(capsys, "--warmup", "mser", "--replications", "2")["study"]
    assert study["warmup"]["s"] == said(capsys, "--warmup", "mser")["variants"][0]["metrics"]["window_s"][0]


def test_where_nothing_is_measured_that_is_said_and_nothing_is_drawn(capsys, tmp_path):
    options = ["--replications", "2", "--jobs", "1", "--warmup", "1000s", "-o", "out"]
    assert main(["compare", "two.yaml", *options]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "Nothing is measured of blocks and regions: no request arrives in the measured window." in told
    assert not list((tmp_path / "out").glob("intervals.*"))
    assert main(["report", "out", "--formats", "svg", "-o", "page"]) == 0


def test_batches_cut_one_run(capsys):
    study = said(capsys, "--batches", "4")["study"]
    assert (study["method"], study["samples"]) == ("batches", 4)


def test_a_trace_is_said_to_be_one_realisation(capsys):
    Path("two.yaml").write_text(TRACED)
    study = said(capsys, "--replications", "5")["study"]
    assert study["method"] == "sessions"
    assert "azure-conv-2023 is one realisation" in study["notes"][0]
    assert main(["compare", "two.yaml", "--until-ci", "5%"]) == 2
    assert capsys.readouterr().err.startswith("kvsim: --until-ci: azure-conv-2023 is one realisation, and more runs")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--replications", "3", "--baseline", "nix"], "kvsim: --baseline nix: is no variant here; choose blocks or r"),
        (["--baseline", "blocks"], "kvsim: --baseline: differences need intervals"),
        (["--batches", "4", "--replications", "2"], "kvsim: --batches: cuts one run instead of repeating it"),
        (["--batches", "1"], "kvsim: --batches 1: must be at least 2"),
        (["--warmup", "soon"], "kvsim: --warmup soon: is neither mser nor a time"),
        (["--jobs", "2"], "kvsim: --jobs: one run of each variant is not shared out"),
        (["--cluster", "local"], "kvsim: --cluster: one run of each variant is not shared out"),
        (["--vary", "seed"], "kvsim: --vary seed: is no key with values"),
    ],
)
def test_what_does_not_go_together_is_one_message_and_exit_2(options, message, capsys, tmp_path):
    assert main(["compare", "two.yaml", *options]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(message)
    assert err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["two.yaml"]


@pytest.mark.parametrize("options", [["--replications", "0"], ["--replications", "x"], ["--until-ci", "120%"],
                                     ["--until-ci", "0"], ["--until-ci", "narrow"], ["--batches", "-3"]])  # fmt: skip
def test_numbers_that_are_none_end_with_exit_2(options, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["compare", "two.yaml", *options])
    assert ended.value.code == 2
    assert f"argument {options[0]}: " in capsys.readouterr().err
