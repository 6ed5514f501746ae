"""`kvsim calibrate build` and `run` as a user meets them on a machine without a GPU."""

import os

import pytest

from kvsim.cli.main import main
from kvsim.cli.options import seconds

NO_GPU = pytest.mark.skipif(os.path.exists("/dev/nvidia0"), reason="this machine has a GPU")


@NO_GPU
def test_without_a_gpu_one_line_says_so_and_nothing_is_written(capsys, tmp_path):
    assert main(["calibrate", "run", "-o", str(tmp_path / "results.jsonl")]) == 77
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("kvsim: no usable GPU: ")
    assert told.err.endswith("; nothing was measured\n")
    assert len(told.err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_an_architecture_that_is_none_is_wrong_input(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["calibrate", "build", "--arch", "hopper"])
    assert ended.value.code == 2
    assert "'hopper' is no architecture; say 90 for compute capability 9.0" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        ("0", "'0' is no time above 0; write seconds, such as 15, or 500ms"),
        ("-3", "is negative; a duration cannot be below 0"),
        ("soon", "'soon' is not a duration; write a finite number and a unit"),
        ("2 weeks", "has an unknown unit 'weeks'; known units are"),
    ],
)
def test_a_budget_is_a_time(capsys, budget, said):
    with pytest.raises(SystemExit) as ended:
        main(["calibrate", "run", "-o", "x.jsonl", f"--budget-s={budget}"])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(("text", "found"), [("15", 15.0), ("0.2", 0.2), ("1.", 1.0), ("15s", 15.0), ("500ms", 0.5)])
def test_a_time_is_a_number_of_seconds_or_says_its_unit(text, found):
    assert seconds(text) == found


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--only", "gemm,gemv"], "'gemv' is no benchmark; there are hbm, gemm"),
        (["--seed=-3"], "'-3' is no seed; give a whole number from 0 to 4294967295"),
        (["--seed=4294967296"], "is no seed"),
    ],
)
def test_what_the_program_would_not_understand_is_refused(capsys, options, said):
    with pytest.raises(SystemExit) as ended:
        main(["calibrate", "run", "-o", "x.jsonl", *options])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["run", "-o", "."], "-o .: is no file but a folder or a device"),
        (["run", "-o", "x.jsonl", "--frag", "none"], "--frag none: is no file; name a trace"),
        (["run", "-o", "x.jsonl", "--program", "none"], "--program none: is no program; name one that"),
        (["run", "-o", "x.jsonl", "--program", "text"], "--program text: is no program; name one that"),
        (["build", "-o", "."], "-o .: is no file but a folder or a device"),
    ],
)
def test_files_are_looked_at_before_the_gpu(capsys, tmp_path, monkeypatch, options, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").write_text("no program")
    assert main(["calibrate", *options]) == 2
    assert said in capsys.readouterr().err
    assert [one.name for one in tmp_path.iterdir()] == ["text"]
