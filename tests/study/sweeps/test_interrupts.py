"""A study that is ended in the middle leaves a folder that is whole, nobody behind, and can be gone on with."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kvsim.cli.main import main
from kvsim.study.store import PIECES
from tests.study.sweeps.small import YAML, table

GRID = ("--grid", "workload.rate=2/s,4/s,8/s", "--grid", "pool.tokens=4096,8192", "--set", "workload.requests=200")
REPLICATIONS = ("--replications", "3")
RUNS = 18
INTERRUPTIBLE = (
    "import signal, sys\n"
    "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    "from kvsim.cli.main import main\n"
    "sys.exit(main())\n"
)
"""A process that was started in the background by a shell ignores interrupts, unless it says otherwise."""


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """The arguments of a study, and the folder it leaves if nobody ends it."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "small.yaml").write_text(YAML)
    arguments = ("sweep", str(folder / "small.yaml"), *GRID, *REPLICATIONS)
    assert main([*arguments, "--jobs", "1", "-o", str(folder / "study"), "--json"]) == 0
    return arguments, folder / "study"


def started(arguments, folder, jobs):
    """The study as a process of its own, of which some pieces are done."""
    command = [sys.executable, "-c", INTERRUPTIBLE, *arguments, "--jobs", str(jobs), "-o", str(folder), "--json"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    until(lambda: len(list((folder / PIECES).glob("*.jsonl"))) >= 2, "pieces")
    return process


def until(there, what):
    deadline = time.monotonic() + 60
    while not there():
        assert time.monotonic() < deadline, f"no {what}"
        time.sleep(0.01)


def descendants(pid):
    """All processes below this one, by the kernel's own record."""
    try:
        below = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
    return below + [deeper for child in below for deeper in descendants(child)]


def running(pid):
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


def test_a_study_killed_in_the_middle_goes_on_to_the_same_bytes_and_leaves_no_process(study, tmp_path, capsys):
    arguments, whole = study
    folder = tmp_path / "study"
    process = started(arguments, folder, jobs=2)
    workers = descendants(process.pid)
    process.kill()
    process.communicate()
    assert not (folder / "runs.parquet").exists()
    until(lambda: not any(map(running, workers)), "end of its workers")
    assert main([*arguments, "--jobs", "1", "-o", str(folder), "--resume", "--json"]) == 0
    assert table(folder) == table(whole)


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupt_leaves_a_table_of_what_is_done_and_says_how_to_go_on(study, tmp_path, jobs, capsys):
    import pyarrow.parquet as pq

    arguments, whole = study
    folder = tmp_path / "study"
    process = started(arguments, folder, jobs)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"of {RUNS} runs are kept in {folder}; --resume goes on" in said
    assert said.endswith("kvsim: interrupted\n")
    assert "Traceback" not in said
    assert 0 < pq.read_metadata(folder / "runs.parquet").num_rows < RUNS
    assert main([*arguments, "--jobs", "1", "-o", str(folder), "--resume", "--json"]) == 0
    assert table(folder) == table(whole)


def test_what_is_done_is_not_done_again(study, monkeypatch, capsys):
    arguments, whole = study

    def again(*_args, **_kwargs):
        raise AssertionError("a run that was done was run again")

    monkeypatch.setattr("kvsim.study.sweeps.runs.observed_run", again)
    before = {path.name: path.read_bytes() for path in (*whole.glob("*.*"), *(whole / PIECES).iterdir())}
    assert main([*arguments, "--jobs", "1", "-o", str(whole), "--resume", "--json"]) == 0
    assert {path.name: path.read_bytes() for path in (*whole.glob("*.*"), *(whole / PIECES).iterdir())} == before
    assert len(list((whole / PIECES).iterdir())) == 1
