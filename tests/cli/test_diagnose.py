"""`kvsim diagnose`: verdict and tables in 80 columns, JSON alone, folder, static form, and what is refused."""

import json

import pytest

from kvsim import run
from kvsim.cli.main import main
from kvsim.scenario import load
from tests.study.diagnosis.conftest import PLANTED

STATIC_LINE = "--tokens 4096 --block-tokens 128 --kv-heads 32 --head-dim 128 --latent 64 --reusable-prefix 1024"
STATIC = STATIC_LINE.split()


@pytest.fixture(autouse=True)
def _narrow(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def files(tmp_path):
    """The planted scenarios as files; JSON is YAML."""
    for name, data in PLANTED.items():
        (tmp_path / f"{name}.yaml").write_text(json.dumps(data))
    return tmp_path


def said_of(capsys):
    out = capsys.readouterr().out
    assert all(len(line) <= 80 for line in out.splitlines())
    return " ".join(out.split())


def test_it_says_the_verdict_the_pressures_and_each_cure_before_and_after_in_80_columns(files, capsys):
    assert main(["diagnose", str(files / "organisation.yaml"), "--jobs", "1"]) == 0
    said = said_of(capsys)
    assert said.startswith(
        "Organisation presses most: 94 % of the slots taken hold no valid KV. The pool was short 42 "
    )
    assert "Its cure, paged: goodput 0.13 -> " in said
    assert ", waste 94 -> 5.1 %." in said
    assert "131,072 B a token (bf16)" in said
    rows = ("before: as it is", "-> fp8 KV", "-> paged ", "-> paged, prefix caching", "-> no bound on the pool")
    assert all(row in said for row in rows)
    assert "expected error" in said
    assert "not modelled:" in said


def test_where_nothing_presses_it_says_so_and_what_limits_instead(files, capsys):
    assert main(["diagnose", str(files / "none.yaml"), "--jobs", "1"]) == 0
    said = said_of(capsys)
    assert "The pool is never full (at most " in said
    assert "KV memory is not what limits this run. Nothing does at this load: nobody waits" in said


def test_a_run_folder_and_its_scenario_give_the_same_json(files, capsys):
    scenario = str(files / "reuse.yaml")
    changes = ["--set", "workload.requests=20", "--seed", "3"]
    run(load(scenario, overrides=changes[1:2]), seed=3).save(files / "run")
    assert main(["diagnose", str(files / "run"), "--jobs", "1", "--json"]) == 0
    of_folder = capsys.readouterr().out
    assert main(["diagnose", scenario, *changes, "--jobs", "1", "--json"]) == 0
    assert capsys.readouterr().out == of_folder
    found = json.loads(of_folder)
    assert (found["dominant"], found["seed"]) == ("reuse", 3)
    assert found["verdict"].startswith("Reuse presses most")
    assert {one["name"] for one in found["cures"]} >= {"fp8 KV", "blocks of 1", "prefix caching", "radix tree"}


def test_a_folder_with_other_numbers_than_now_is_told(files, capsys):
    run(load(files / "none.yaml")).save(files / "run")
    path = files / "run" / "summary.json"
    summary = json.loads(path.read_text())
    summary["metrics"]["steps"] += 1
    path.write_text(json.dumps(summary))
    assert main(["diagnose", str(files / "run"), "--jobs", "1"]) == 0
    assert "note: The folder holds other numbers than a run gives now" in said_of(capsys)


def test_the_folder_has_numbers_figure_and_readme_and_the_same_bytes_each_time(files, capsys):
    for name in ("one", "two"):
        arguments = ["diagnose", str(files / "representation.yaml"), "--jobs", "1", "-o", str(files / name), "--json"]
        assert main(arguments) == 0
    told = capsys.readouterr().out
    names = ["README.md", "diagnosis.json", "diagnosis.png", "diagnosis.svg"]
    assert sorted(path.name for path in (files / "one").iterdir()) == names
    for name in names:
        assert (files / "one" / name).read_bytes() == (files / "two" / name).read_bytes()
    assert told == 2 * (files / "one" / "diagnosis.json").read_text()


def test_given_numbers_are_told_with_the_caution(capsys):
    assert main(["diagnose", *STATIC]) == 0
    said = said_of(capsys)
    assert "4,096 tokens are 32 blocks with 0 wasted slots" in said
    assert "saves 0.9922 of the" in said
    assert "1,024 of the 4,096 tokens are a reusable prefix" in said
    assert "Three different observables" in said
    assert "none is an end-to-end gain" in said


def test_given_numbers_as_json(capsys):
    assert main(["diagnose", *STATIC, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["blocks"], found["wasted_slots"], found["reusable_tokens"]) == (32, 0, 1024)
    assert found["saved_share"] == 1 - 64 / 8192
    assert "end-to-end" in found["caution"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "nothing is named; name a run folder or a scenario file"),
        (STATIC[:4], "--kv-heads, --head-dim, --latent, --reusable-prefix missing"),
        ([*STATIC[:-1], "4097"], "--reusable-prefix: 4097 is impossible; must be from 0 to the 4096 tokens"),
        ([*STATIC[:-1], "-1"], "--reusable-prefix: -1 is impossible"),
        (["--tokens", "0", *STATIC[2:]], "--tokens: 0 is impossible; must be a positive whole number"),
        ([*STATIC[:2], "--block-tokens", "-3", *STATIC[4:]], "--block-tokens: -3 is impossible"),
        ([*STATIC, "--seed", "1"], "--seed: is for a run"),
        ([*STATIC, "-o", "there"], "-o: is for a run"),
        ([*STATIC, "--set", "a=1"], "--set: is for a run"),
        (["some.yaml", "--tokens", "5"], "--tokens: is for given numbers"),
        (["missing.yaml"], "missing.yaml: cannot be read"),
    ],
)
def test_what_cannot_be_told_is_refused_with_what_would_be_right(arguments, said, capsys):
    assert main(["diagnose", *arguments]) == 2
    assert said in capsys.readouterr().err
