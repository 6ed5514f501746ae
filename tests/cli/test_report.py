"""`kvsim report`: what it takes, what it runs first, what it writes and prints."""

import json
from contextlib import suppress

import pytest

from kvsim.cli.main import main
from kvsim.metrics.result import Result
from kvsim.reporting.figures.catalogue import FIGURES
from kvsim.reporting.page import pictures
from kvsim.reporting.run_folder import write_run
from tests.fake_results import fake_result

SMALL = """\
name: small
model: llama-3.1-8b
gpu: RTX 4090
engine: {profile: vllm@0.33-sync, max_model_len: 512}
pool: {tokens: 2048}
workload: {rate: 20/s, requests: 5, prompt_tokens: 60, output_tokens: 20}
variants:
  reserve: {allocator: {name: reserve, size: max}}
  tree: {allocator: radix}
"""


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(pictures, "FIGURES", ())  # how they are drawn is tested elsewhere
    (tmp_path / "small.yaml").write_text(SMALL)


def test_a_scenario_is_run_and_its_run_folders_lie_beside_the_page(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(pictures, "FIGURES", FIGURES[:1])
    assert (
        main(["report", "small.yaml", "-o", "out", "--formats", "svg", "--seed", "3", "--set", "pool.tokens=1024"]) == 0
    )
    printed = capsys.readouterr().out
    assert printed.startswith("Pool 1,024 tokens, 5 requests: ")
    assert "memory map of reserve: " in printed
    assert "memory map of tree: " in printed
    assert "page written to out/report.html (0." in printed
    runs = [Result.load(tmp_path / "out" / name) for name in ("reserve", "tree")]
    assert [run.seed for run in runs] == [3, 3]
    assert ["addresses" in run.tables for run in runs] == [True, True]
    assert ["prompts" in run.tables for run in runs] == [False, True]
    assert (tmp_path / "out" / "tree" / "memory_over_time.svg").is_file()
    assert not list(tmp_path.rglob("*.png"))
    again = (tmp_path / "out" / "report.html").read_bytes()
    assert main(["report", "out", "-o", "again", "--formats", "svg"]) == 0
    assert (tmp_path / "again" / "report.html").read_bytes() == again


def test_one_variant_alone_lies_in_the_folder_itself_and_json_says_what_was_written(tmp_path, capsys):
    assert main(["report", "small.yaml", "--variant", "tree", "--no-page", "--formats", "png", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["folder"] == "runs/small"
    assert told["page"] is None
    assert set(told["files"]) == {"runs/small/README.md"}
    assert Result.load(tmp_path / "runs" / "small").metrics["arrived"] == 5


def test_a_folder_is_reported_where_it_lies_and_several_need_a_folder(tmp_path, capsys):
    for name in ("a", "b"):
        write_run(fake_result(name), tmp_path / name, figures=False)
    assert main(["report", "a", "--formats", "svg"]) == 0
    assert (tmp_path / "a" / "report.html").is_file()
    assert main(["report", "a", "b"]) == 2
    assert "-o: several folders make one report; name a folder for it with -o DIR" in capsys.readouterr().err
    assert main(["report", "a", "b", "-o", "both", "--formats", "svg", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["page_bytes"] == (tmp_path / "both" / "report.html").stat().st_size


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "'nowhere': is not there; name a folder"),
        (["small.yaml", "small.yaml"], "small.yaml: is a file beside other inputs"),
        (["small.yaml", "--variant", "best"], "best is no variant of this scenario; it has reserve, tree"),
        (["a", "--set", "seed=3"], "--set: is for a scenario, and a is a folder"),
        (["a", "--seed", "3"], "--seed: is for a scenario"),
        (["a", "--formats", "gif"], "'gif' is no form of a figure; some of png,svg,pdf are"),
        (["a", "-o", "small.yaml"], "-o small.yaml: is a file"),
    ],
)
def test_wrong_input_is_told_and_nothing_is_written(tmp_path, capsys, arguments, message):
    write_run(fake_result("a"), tmp_path / "a", figures=False)
    before = sorted(tmp_path.rglob("*"))
    with suppress(SystemExit):  # what argparse refuses
        assert main(["report", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == before


def test_compare_records_addresses_on_request_of_regions_and_trees(tmp_path, capsys):
    assert main(["compare", "small.yaml", "--addresses", "-o", "out", "--json"]) == 0
    assert (tmp_path / "out" / "reserve" / "addresses.parquet").is_file()
    assert (tmp_path / "out" / "tree" / "addresses.parquet").is_file()
    mapped = capsys.readouterr().out
    assert main(["compare", "small.yaml", "--json"]) == 0
    assert capsys.readouterr().out == mapped
    assert main(["compare", "small.yaml", "--addresses", "--json"]) == 2
    assert "--addresses: goes into the run folders" in capsys.readouterr().err
