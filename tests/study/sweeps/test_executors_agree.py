"""The same study gives the same bytes wherever it is computed, and whoever dies meanwhile."""

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from multiprocessing import active_children

import pytest

from kvsim.scenario.resolve import Scenario
from kvsim.study.sweeps.points import listed
from kvsim.study.sweeps.runs import outcome
from kvsim.study.sweeps.sweep import planned, sweep
from tests.study.sweeps.small import GRID, SCENARIO, table

REPLICATIONS = 4
EXTRA = "needs the extra `cluster`: pip install 'kvsim[cluster]'"


@pytest.fixture(scope="module")
def serial(tmp_path_factory):
    """The table of the study, computed in this very process."""
    folder = tmp_path_factory.mktemp("serial") / "study"
    sweep(SCENARIO, grid=GRID, replications=REPLICATIONS, jobs=1, folder=folder)
    return table(folder)


def computed(folder, **where):
    done = sweep(SCENARIO, grid=GRID, replications=REPLICATIONS, folder=folder, **where)
    assert len(done.rows) == 6 * REPLICATIONS
    assert not done.failed
    return table(folder)


def once(act):
    """A progress callback that acts at the first outcome, and never again."""
    acted = []

    def told(done, total):
        if done and not acted:
            acted.append(act())

    return told


def test_two_processes_give_the_bytes_of_one(tmp_path, serial):
    assert computed(tmp_path / "study", jobs=2) == serial


def test_a_worker_process_that_is_killed_costs_no_row(tmp_path, serial):
    killed = []

    def kill():
        killed.append(active_children()[0].pid)
        os.kill(killed[0], signal.SIGKILL)

    assert computed(tmp_path / "study", jobs=2, progress=once(kill)) == serial
    assert killed


def test_a_local_cluster_gives_the_same_bytes(tmp_path, serial):
    pytest.importorskip("distributed", reason=EXTRA)
    assert computed(tmp_path / "study", cluster="local", jobs=2) == serial


@contextmanager
def cluster_by_hand(folder, workers=2):
    """A scheduler and workers on the loopback, each a process started as a person would; yields address and workers."""
    told = folder / "scheduler.json"
    started = [
        _start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(told))
    ]
    try:
        deadline = time.monotonic() + 60
        while not told.exists() or not told.read_text():
            assert started[0].poll() is None, "the scheduler ended"
            assert time.monotonic() < deadline, "the scheduler does not come up"
            time.sleep(0.05)
        address = json.loads(told.read_text())["address"]
        for _ in range(workers):
            scratch = ["--local-directory", str(folder)]
            started.append(_start("worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard", *scratch))
        yield address, started[1:]
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait()


def _start(kind, *arguments):
    command = [sys.executable, "-W", "ignore", "-m", f"distributed.cli.dask_{kind}", *arguments]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def test_a_scheduler_and_workers_by_hand_give_the_same_bytes_though_one_is_killed(tmp_path, serial):
    distributed = pytest.importorskip("distributed", reason=EXTRA)
    with cluster_by_hand(tmp_path) as (address, workers):
        with distributed.Client(address) as client:
            client.wait_for_workers(2, timeout=60)
        assert computed(tmp_path / "study", cluster=address, progress=once(workers[0].kill)) == serial
        assert workers[0].wait() == -signal.SIGKILL


def test_files_that_a_scenario_names_are_found_by_workers_that_work_elsewhere(tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46,374,44\n")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    scenario = Scenario.from_dict({**SCENARIO, "workload": {"trace": "t.csv"}})
    [run, *_] = planned([scenario], listed([{"seed": 1}])).runs
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert outcome(pickle.loads(pickle.dumps(run)))["metrics"]["finished"] == 1
