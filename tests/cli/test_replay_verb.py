"""`kvsim replay`: lines out, or the first difference."""

import json

import pytest

from kvsim.cli.main import main
from kvsim.errors import InputError

STEPS = [{"step": 0, "sched": [["r0", 5]]}, {"step": 1, "sched": []}]
LINES = [*STEPS, {"summary": {"steps": 2}}]
TEXT = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in LINES)


@pytest.fixture
def case(tmp_path, monkeypatch):
    """A case file, and a stand-in for the engine's replay that answers with `LINES`."""

    def compare_records(ours, recorded):
        for count, (mine, theirs) in enumerate(zip(ours, recorded, strict=True)):
            if mine != theirs:
                return count, f"step {count}, field 'sched'\n  ours:     {mine}\n  recorded: {theirs}"
        return count + 1, None

    monkeypatch.setattr("kvsim.engine.replay.replay", lambda case: iter(LINES))
    monkeypatch.setattr("kvsim.engine.replay.compare_records", compare_records)
    path = tmp_path / "case.json"
    path.write_text(json.dumps({"config": {}, "requests": []}))
    return path


def test_replay_prints_one_line_a_step_and_a_summary_line(case, capsys):
    assert main(["replay", str(case)]) == 0
    assert capsys.readouterr().out == TEXT


@pytest.mark.parametrize("file", ["out.jsonl", "new/folder/out.jsonl"])
def test_replay_writes_the_same_lines_to_a_file_and_prints_none(case, capsys, tmp_path, file):
    assert main(["replay", str(case), "-o", str(tmp_path / file)]) == 0
    assert (tmp_path / file).read_text() == TEXT
    assert capsys.readouterr().out == ""


def test_an_equal_record_is_said_to_be_equal(case, capsys, tmp_path):
    (tmp_path / "recorded.jsonl").write_text(TEXT)
    assert main(["replay", str(case), "--against", str(tmp_path / "recorded.jsonl")]) == 0
    assert capsys.readouterr().out == "equal: 2 steps and the summary\n"


def test_the_first_difference_is_shown_from_both_sides_with_exit_1(case, capsys, tmp_path):
    (tmp_path / "recorded.jsonl").write_text(TEXT.replace('["r0",5]', '["r0",6]'))
    assert main(["replay", str(case), "--against", str(tmp_path / "recorded.jsonl")]) == 1
    assert capsys.readouterr().out == (
        "differs at step 0, field 'sched'\n"
        "  ours:     {'step': 0, 'sched': [['r0', 5]]}\n"
        "  recorded: {'step': 0, 'sched': [['r0', 6]]}\n"
    )


def test_out_and_against_do_both(case, tmp_path):
    (tmp_path / "recorded.jsonl").write_text(TEXT)
    options = ["-o", str(tmp_path / "out.jsonl"), "--against", str(tmp_path / "recorded.jsonl")]
    assert main(["replay", str(case), *options]) == 0
    assert (tmp_path / "out.jsonl").read_text() == TEXT


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"{", "is not JSON"),
        (b"[1]", "has no 'config'"),
        (b'{"config": {}}', "has no 'requests'"),
        (b"\xff\xfe", "is not UTF-8"),
    ],
)
def test_a_file_that_is_no_case_is_exit_2(case, content, said, capsys):
    case.write_bytes(content)
    assert main(["replay", str(case)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"kvsim: {case}: {said}")


@pytest.mark.parametrize(
    ("content", "said"),
    [("", "is empty"), ('{"step":0}\nx\n', ":2: is not JSON"), ("3\n", ":1: is no JSON object")],
)
def test_a_file_that_is_no_record_is_exit_2(case, content, said, capsys, tmp_path):
    recorded = tmp_path / "recorded.jsonl"
    recorded.write_text(content)
    assert main(["replay", str(case), "--against", str(recorded)]) == 2
    assert said in capsys.readouterr().err


def test_a_missing_case_is_exit_2(case, capsys, tmp_path):
    assert main(["replay", str(tmp_path / "none.json")]) == 2
    assert "none.json: cannot be read (No such file or directory)" in capsys.readouterr().err


def test_what_the_engine_refuses_is_said_with_the_name_of_the_file(case, capsys, monkeypatch):
    def refuse(case):
        raise InputError("config.page_size: a case of another engine")
        yield

    monkeypatch.setattr("kvsim.engine.replay.replay", refuse)
    assert main(["replay", str(case)]) == 2
    assert capsys.readouterr() == ("", f"kvsim: {case}: config.page_size: a case of another engine\n")
