"""Wrong input, end to end: exit 2, one message that names the place and the cure, and nothing else at all."""

import json
import os

import pytest

from kvsim.cli.main import main

SCENARIO = """\
model: llama-3.1-8b
gpu: RTX 4090
pool: {blocks: 2588}
engine: {max_model_len: 4096}
workload:
  rate: 8/s
  requests: 5
  prompt_tokens: 100
  output_tokens: 5
"""
WITH_TRACE = """\
model: llama-3.1-8b
gpu: RTX 4090
pool: {blocks: 2588}
engine: {max_model_len: 4096}
workload:
  trace: trace.csv
"""
TRACE = """\
TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:15:46.6805900,374,44
2023-11-16 18:15:50.9951690,396,109
2023-11-16 18:15:51.2229670,879,55
"""


@pytest.fixture(params=["run", "compare"])
def refused(request, tmp_path, monkeypatch, capsys):
    """Run `kvsim run` (and `compare`) on scenario.yaml, asking for a folder; the one message it ends with."""
    monkeypatch.chdir(tmp_path)

    def message(scenario, *options, trace=None):
        if scenario is not None:
            (tmp_path / "scenario.yaml").write_text(scenario)
        if trace is not None:
            (tmp_path / "trace.csv").write_text(trace)
        before = sorted(path.name for path in tmp_path.iterdir())
        assert main([request.param, "scenario.yaml", "-o", "out", *options]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("kvsim: ")
        assert err.count("kvsim: ") == 1
        assert err.endswith("\n")
        assert len(err.splitlines()) == 1
        assert "Traceback" not in err
        assert sorted(path.name for path in tmp_path.iterdir()) == before
        return err

    return message


def changed(old, new, text=SCENARIO):
    assert text.count(old) == 1
    return text.replace(old, new)


def test_the_scenario_and_the_trace_are_right_as_they_are(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trace.csv").write_text(TRACE)
    for text in (SCENARIO, WITH_TRACE):
        (tmp_path / "scenario.yaml").write_text(text)
        assert main(["run", "scenario.yaml", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["metrics"]["finished"] in (3, 5)


@pytest.mark.parametrize(
    ("old", "new", "place", "said"),
    [
        ("gpu: RTX 4090", "gpuu: RTX 4090\ngpu: RTX 4090", "scenario.yaml:2: gpuu: ", "did you mean gpu?"),
        ("  rate: 8/s", "  rate: 8/s\n  rat: 1", "scenario.yaml:7: workload.rat: ", "unknown key"),
        ("llama-3.1-8b", "llama-3.1-9b", "scenario.yaml:1: model", "llama-3.1-9b"),
        ("RTX 4090", "RTX 4091", "scenario.yaml:2: gpu: ", "RTX 4091"),
        ("8/s", "-8/s", "scenario.yaml:6: workload.rate: ", "negative"),
        ("blocks: 2588", "blocks: 0", "scenario.yaml:3: pool.blocks: 0 ", "at least 1"),
        ("blocks: 2588", "memory: 12", "scenario.yaml:3: pool.memory: 12 ", "has no unit; write for example 12GiB"),
        ("prompt_tokens: 100", "prompt_tokens: 0", "scenario.yaml:8: workload.prompt_tokens: 0 ", "at least 1"),
        ("output_tokens: 5", "output_tokens: 0", "scenario.yaml:9: workload.output_tokens: 0 ", "at least 1"),
        ("8/s", ".nan", "scenario.yaml:6: workload.rate: ", "nan"),
        ("8/s", "nan/s", "scenario.yaml:6: workload.rate: ", "nan"),
        ("prompt_tokens: 100", "prompt_tokens: .nan", "scenario.yaml:8: workload.prompt_tokens: ", "nan"),
        ("requests: 5", "requests: .inf", "scenario.yaml:7: workload.requests: ", "inf"),
    ],
    ids=lambda value: value.strip().replace("\n", " ") if isinstance(value, str) else None,
)
def test_a_wrong_value_is_told_with_file_line_key_and_cure(refused, old, new, place, said):
    message = refused(changed(old, new))
    assert message.startswith(f"kvsim: {place}")
    assert said in message


def test_an_override_that_is_wrong_is_told_as_one(refused):
    message = refused(SCENARIO, "--set", "workload.rate=-1/s")
    assert "--set" in message
    assert "workload.rate" in message
    assert "negative" in message


def test_a_scenario_that_extends_itself_is_refused(refused):
    message = refused(changed("gpu: RTX 4090", "gpu: RTX 4090\nextends: scenario.yaml"))
    assert message.startswith("kvsim: scenario.yaml")
    assert "extends" in message


def test_a_scenario_that_extends_itself_through_another_is_refused(refused, tmp_path):
    (tmp_path / "base.yaml").write_text("extends: scenario.yaml\n")
    message = refused(changed("gpu: RTX 4090", "gpu: RTX 4090\nextends: base.yaml"))
    assert "extends" in message
    assert "base.yaml" in message


def test_a_scenario_that_is_not_there_is_refused(refused):
    assert refused(None).startswith("kvsim: scenario.yaml: ")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="who may read everything, can")
def test_a_scenario_that_may_not_be_read_is_refused(refused, tmp_path):
    (tmp_path / "scenario.yaml").write_text(SCENARIO)
    (tmp_path / "scenario.yaml").chmod(0)
    assert refused(None).startswith("kvsim: scenario.yaml: ")


def test_a_scenario_that_cannot_be_opened_is_refused(refused, tmp_path):
    (tmp_path / "scenario.yaml").symlink_to("scenario.yaml")
    assert refused(None).startswith("kvsim: scenario.yaml: ")


def test_a_folder_in_place_of_a_scenario_is_refused(refused, tmp_path):
    (tmp_path / "scenario.yaml").mkdir()
    assert refused(None).startswith("kvsim: scenario.yaml: ")


@pytest.mark.parametrize("content", [b"\xff\xfe\x00a", b"\x00\x01\x02"])
def test_a_scenario_that_is_no_text_is_refused(refused, tmp_path, content):
    (tmp_path / "scenario.yaml").write_bytes(content)
    assert refused(None).startswith("kvsim: scenario.yaml: is not a YAML text but a binary file; name a scenario")


@pytest.mark.parametrize("text", ["", "a: [1\n", "- 1\n", "just words\n", "model: a\nmodel: b\n"])
def test_a_scenario_that_is_no_mapping_is_refused(tmp_path, monkeypatch, capsys, text):
    """An empty file lacks several keys at once, each with a line of its own in the one message."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scenario.yaml").write_text(text)
    assert main(["run", "scenario.yaml", "-o", "out"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("kvsim: scenario.yaml")
    assert err.count("kvsim: ") == 1
    assert not (tmp_path / "out").exists()


# Traces.


@pytest.mark.parametrize("trace", ["", "\n", "TIMESTAMP,ContextTokens,GeneratedTokens\n"])
def test_an_empty_trace_is_refused(refused, trace):
    message = refused(WITH_TRACE, trace=trace)
    assert "trace.csv" in message
    assert "empty" in message or "blank" in message


@pytest.mark.parametrize(
    ("old", "new", "row", "column", "said"),
    [
        ("396,109", "many,109", 2, "ContextTokens", "many"),
        ("396,109", "0,109", 2, "ContextTokens", "a prompt of 0 tokens"),
        ("396,109", "-3,109", 2, "ContextTokens", "negative"),
        ("396,109", "nan,109", 2, "ContextTokens", "not a number"),
        ("879,55", "879,", 3, "GeneratedTokens", "empty cell"),
        ("879,55", "879,5.5", 3, "GeneratedTokens", "not a whole number"),
        ("2023-11-16 18:15:46.6805900", "yesterday", 1, "TIMESTAMP", "yesterday"),
    ],
)
def test_a_bad_row_is_told_with_file_row_column_and_value(refused, old, new, row, column, said):
    message = refused(WITH_TRACE, trace=changed(old, new, TRACE))
    assert f"trace.csv: row {row} (line {row + 1} of the file), column {column}: " in message
    assert said in message
    assert "on_bad_row: drop" in message


def test_a_row_with_too_few_columns_is_told_with_file_and_row(refused):
    message = refused(WITH_TRACE, trace=changed("396,109", "396", TRACE))
    assert "trace.csv: row 2 (line 3 of the file)" in message


def test_times_that_are_not_sorted_are_refused_unless_they_are_to_be_sorted(refused):
    trace = changed("18:15:51.2229670", "18:15:49.0000000", TRACE)
    message = refused(WITH_TRACE, trace=trace)
    assert "trace.csv: row 3 (line 4 of the file), column TIMESTAMP: " in message
    assert "sort: true" in message


def test_a_bad_row_that_is_left_out_and_times_that_are_sorted_are_no_mistakes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scenario.yaml").write_text(WITH_TRACE + "  sort: true\n  on_bad_row: drop\n")
    trace = changed("18:15:51.2229670", "18:15:49.0000000", changed("396,109", "many,109", TRACE))
    (tmp_path / "trace.csv").write_text(trace)
    assert main(["run", "scenario.yaml", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["metrics"]["finished"] == 2


def test_a_trace_that_is_not_there_is_refused_with_the_key(refused):
    message = refused(WITH_TRACE)
    assert message.startswith("kvsim: scenario.yaml:6: workload.trace: trace.csv ")


def test_a_trace_of_no_known_format_is_refused(refused):
    assert "trace.csv" in refused(WITH_TRACE, trace="when,how much\n1,2\n")
