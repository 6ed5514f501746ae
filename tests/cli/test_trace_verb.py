"""`kvsim trace`: tables at 80 columns, JSON and nothing else, folders, written forms, scenarios, what is refused."""

import json

import pytest

from kvsim.cli.main import main
from tests.workload.readers.clients.test_servegen import archive, files
from tests.workload.readers.forms import FORMS

TRACE = "mooncake-conversation"


@pytest.fixture(autouse=True)
def _narrow(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


@pytest.mark.parametrize("name", FORMS)
def test_the_report_of_any_format_fits_80_columns(tmp_path, monkeypatch, capsys, name):
    monkeypatch.chdir(tmp_path)
    path = FORMS[name].write(tmp_path)
    told = ["--chars-per-token", "4", "--output-tokens", "7"]
    told += ["--block-tokens", "16"] if name == "table" else []
    assert main(["trace", "inspect", path.name, *told]) == 0
    out = capsys.readouterr().out
    assert all(len(line) <= 80 for line in out.splitlines())
    said = " ".join(out.split())
    assert f"format {name}" in said
    assert "prefix identity" in said
    assert " read, " in said


def test_the_report_says_what_was_read_what_it_is_like_and_what_is_shared(capsys):
    assert main(["trace", "inspect", TRACE]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "400 requests of mooncake-conversation, 2.35 min long, 2.83 /s." in said
    assert "prompt tokens 14,276 9,076 49,904 89,997 121,298" in said
    assert "ideal prefix hit 13.5 % of blocks, 13.7 % of tokens (11,349 blocks, 9,821 distinct)" in said
    assert "without the 88.2 % of 0" in said
    assert "19.9 (1: Poisson); 0.3 without the last, partly filled bin" in said
    assert "rows 400 read, 400 requests kept" in said
    assert "real: blocks of 512 tokens, ids good in the whole trace" in said


def test_json_is_one_object_with_report_and_statistics(capsys):
    assert main(["trace", "inspect", TRACE, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["report"]["rows_kept"] == 400
    assert found["report"]["hash_scope"] == "global"
    assert found["sharing"]["distinct_blocks"] == 9821
    assert found["arrivals"]["bin_s"] == 60
    assert found["sessions"] is None


def test_dropped_rows_are_told_by_reason(tmp_path, capsys):
    assert main(["trace", "inspect", str(FORMS["burstgpt"].write(tmp_path))]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "rows 3 read, 2 requests kept" in said
    assert "dropped - 1 x a failed call" in said


def test_identity_without_blocks_is_what_turns_add(tmp_path, capsys):
    assert main(["trace", "inspect", str(FORMS["copilot"].write(tmp_path))]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "prefix identity real: what each turn adds to its session" in said
    assert "told by sessions 76.2 % of prompt tokens were there before" in said


def test_a_folder_gets_the_figure_and_the_numbers(tmp_path, capsys):
    assert main(["trace", "inspect", TRACE, "-o", str(tmp_path / "new"), "--json"]) == 0
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["trace.json", "trace.png", "trace.svg"]
    assert json.loads(capsys.readouterr().out) == json.loads((tmp_path / "new" / "trace.json").read_text())


def test_the_clients_of_a_servegen_archive_are_told_as_clients(tmp_path, capsys):
    path = archive(tmp_path, files(0, 1))
    assert main(["trace", "inspect", str(path), "-o", str(tmp_path / "out")]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "2 clients of" in said
    assert "input_tokens 17.5 20 20 20 20" in said
    assert "servegen: clients and laws, no requests" in said
    assert json.loads((tmp_path / "out" / "trace.json").read_text())["clients"] == 2


def test_clients_are_no_requests_to_write(tmp_path, capsys):
    assert main(["trace", "convert", str(archive(tmp_path, files(0)))]) == 2
    assert "describes clients, not requests" in capsys.readouterr().err


def test_clients_are_fitted_as_one(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["trace", "fit", str(archive(tmp_path, files(0, 1)))]) == 0
    text = capsys.readouterr().out
    # 2 x (600 x 2 + 600 x 1) requests in 1,800 s.
    assert "\n  rate: 2/s\n" in text
    assert "\n  requests: 3600\n" in text
    assert "arrivals: {process: gamma, cv: 1.5}" in text
    (tmp_path / "s.yaml").write_text("model: llama-3.1-8b\ngpu: RTX 4090\n" + text)
    assert main(["run", "s.yaml", "--set", "workload.requests=20", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["metrics"]["finished"] == 20


def test_a_trace_is_written_as_mooncake_and_as_vidur_with_what_was_left_behind(tmp_path, capsys):
    path = FORMS["bailian"].write(tmp_path)
    assert main(["trace", "convert", str(path)]) == 0
    out, err = capsys.readouterr()
    rows = [json.loads(line) for line in out.splitlines()]
    assert rows[0] == {
        "session_id": "1",
        "timestamp": 0,
        "input_length": 40,
        "output_length": 9,
        "block_size": 16,
        "hash_ids": [0, 1, 2],
    }
    assert rows[1]["hash_ids"] == [0, 1, 3, 4]
    assert "2 requests of" in err
    target = tmp_path / "new" / "written.csv"
    assert main(["trace", "convert", str(path), "--to", "vidur", "-o", str(target)]) == 0
    assert target.read_text() == "arrived_at,num_prefill_tokens,num_decode_tokens\n0,40,9\n13.75,64,8\n"
    assert "2 x a call with ids of prefix blocks: they were left out" in capsys.readouterr().err


def test_a_trace_that_breaks_off_leaves_no_half_written_file(tmp_path, capsys):
    path = FORMS["azure"].write(tmp_path, FORMS["azure"].text + "soon,1,1\n")
    before = sorted(tmp_path.iterdir())
    assert main(["trace", "convert", str(path), "-o", str(tmp_path / "written.jsonl")]) == 2
    assert sorted(tmp_path.iterdir()) == before
    assert "column TIMESTAMP: 'soon': not a time" in capsys.readouterr().err


def test_what_fit_prints_runs_as_a_scenarios_workload(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["trace", "fit", "azure-conv-2023"]) == 0
    text = capsys.readouterr().out
    assert text.startswith('# Fitted to "azure-conv-2023", 600 requests; behind each law its distance (KS)\n')
    assert "# prompt_tokens: quantiles 0.0" in text
    (tmp_path / "s.yaml").write_text("model: llama-3.1-8b\ngpu: RTX 4090\n" + text)
    assert main(["run", "s.yaml", "--set", "workload.requests=20", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["metrics"]["arrived"] == 20


def test_fit_as_json_has_every_law_with_its_distance(capsys):
    assert main(["trace", "fit", "azure-conv-2023", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {fit["law"] for fit in found["prompt"]} >= {"quantiles", "mixture", "lognormal", "gamma", "weibull"}
    assert all(0 <= fit["ks"] <= 1 for fit in found["prompt"] + found["output"])
    assert found["workload"]["requests"] == 600


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["no-such.csv"], "no such trace file"),
        ([TRACE, "--format", "xls"], "--format: must be one of azure, burstgpt"),
        ([TRACE, "--columns", "size=x"], "--columns: must name one of time, prompt, output"),
        ([TRACE, "--block-tokens", "16"], "blocks of 483 tokens would do"),
        ([TRACE, "--tokenizer", "no.such:thing"], "--tokenizer no.such:thing: cannot be loaded"),
        ([TRACE, "--tokenizer", "sys:path"], "--tokenizer sys:path: is no function"),
    ],
)
@pytest.mark.parametrize("action", ["inspect", "convert", "fit"])
def test_wrong_input_ends_with_exit_2_and_says_why(action, arguments, said, capsys):
    assert main(["trace", action, *arguments]) == 2
    out, err = capsys.readouterr()
    assert said in err
    assert out == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--chars-per-token", "0"], "'0' is no number of characters above 0, e.g. 4"),
        (["--columns", "prompt"], "'prompt' is no list of NAME=COLUMN"),
        (["--requests", "0"], "'0' is no whole number of at least 1"),
    ],
)
def test_an_option_that_is_none_is_refused_on_the_command_line(arguments, said, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["trace", "inspect", TRACE, *arguments])
    assert stop.value.code == 2
    assert said in capsys.readouterr().err
