"""`kvsim hit-curve`: the table at 80 columns, JSON and nothing else, the folder, and what is refused."""

import json

import pytest

from kvsim.cli.main import main
from kvsim.memory.eviction import POLICIES

TRACE = "mooncake-conversation"


@pytest.fixture(autouse=True)
def _narrow(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


def test_the_table_of_all_policies_fits_80_columns_and_names_the_knee_and_the_ideal(capsys):
    assert main(["hit-curve", TRACE, "--policy", "all", "--model", "llama-3.1-8b", "--sizes", "64,8192"]) == 0
    out = capsys.readouterr().out
    assert all(len(line) <= 80 for line in out.splitlines())
    said = " ".join(out.split())
    assert "of the ideal, LRU reaches 50 % at 5,305 blocks (2.72M tokens, 332 GiB); 90 % at 7,496 blocks" in said
    assert "13.5 % of all blocks, 13.7 % of prompt tokens; 13.9 % of full blocks alone" in said
    assert "Identity is real: the file's ids name prefixes." in said
    assert "8,192 4.19M 512 13.5" in said
    assert "up to 511 shared tokens" in said


def test_json_is_one_object_with_every_policy_at_every_size(capsys):
    assert main(["hit-curve", TRACE, "--policy", "lru,fifo", "--sizes", "9821,3000000tokens", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [point["size"]["blocks"] for point in found["points"]] == [5859, 9821]
    assert all(set(point["policies"]) == {"lru", "fifo"} for point in found["points"])
    assert found["points"][1]["policies"]["fifo"] == found["ideal"]
    assert found["points"][0]["size"]["gib"] is None


def test_a_folder_gets_the_figure_and_the_numbers(tmp_path, capsys):
    arguments = ["hit-curve", TRACE, "--policy", ",".join(POLICIES), "--sizes", "8,64,5000", "--requests", "100"]
    assert main([*arguments, "-o", str(tmp_path / "new"), "--json"]) == 0
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == [
        "hit_curve.json",
        "hit_curve.png",
        "hit_curve.svg",
    ]
    assert json.loads(capsys.readouterr().out) == json.loads((tmp_path / "new" / "hit_curve.json").read_text())


def test_a_trace_that_shares_nothing_says_so(tmp_path, capsys):
    path = tmp_path / "trace.jsonl"
    path.write_text('{"timestamp": 0, "input_length": 700, "output_length": 1, "hash_ids": [1, 2]}\n')
    assert main(["hit-curve", str(path), "-o", str(tmp_path / "out")]) == 0
    assert "share nothing: no cache is worth it." in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["azure-conv-2023"], "does not tell what prompts share"),
        ([TRACE, "--policy", "lru,belady"], "--policy 'belady': is no policy; choose from lru, lru-head-first"),
        ([TRACE, "--sizes", "40GiB"], "--sizes 40GiB: needs --model"),
        ([TRACE, "--sizes", ""], "is not a size; write a finite number and a unit"),
        ([TRACE, "--format", "xls"], "--format: must be one of azure, burstgpt, vidur, lengths"),
        ([TRACE, "--block-tokens", "16"], "blocks of 483 tokens would do"),
        ([TRACE, "--model", "none-such"], "none-such"),
        (["no-such.jsonl"], "no such trace file"),
    ],
)
def test_wrong_input_ends_with_exit_2_and_says_why(arguments, said, capsys):
    assert main(["hit-curve", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_number_that_is_none_is_refused_on_the_command_line(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["hit-curve", TRACE, "--requests", "0"])
    assert stop.value.code == 2
    assert "'0' is no whole number of at least 1" in capsys.readouterr().err
