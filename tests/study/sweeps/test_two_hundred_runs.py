"""A sweep of 200 runs of 0.3 s and more: how much faster two processes are, and the same bytes from everywhere."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import active_children

import pytest

from kvsim.scenario.resolve import Scenario
from kvsim.study.executors import opened
from kvsim.study.store import PIECES
from kvsim.study.sweeps.points import grid
from kvsim.study.sweeps.sweep import planned, run_missing, sweep
from tests.study.sweeps.small import SCENARIO, YAML, table
from tests.study.sweeps.test_executors_agree import EXTRA, cluster_by_hand, once
from tests.study.sweeps.test_interrupts import until

pytestmark = pytest.mark.slow

LONG = SCENARIO | {"workload": SCENARIO["workload"] | {"requests": 4000}}
GRID = {"workload.rate": ["1/s", "2/s", "3/s", "4/s"], "pool.tokens": [8192, 12288, 16384, 20480, 24576]}
REPLICATIONS = 10
RUNS = 200

ROUNDS = 5
"""The four things that are timed take turns, a fifth of the runs at a time: the load of a machine changes meanwhile."""

LEAST_SHARE = 0.9


def burn(_):
    """A pure loop on one core, about as long as a run."""
    total = 0
    for number in range(5_000_000):
        total += number * number
    return total


def seconds(work, *args, **kwargs):
    started = time.perf_counter()
    work(*args, **kwargs)
    return time.perf_counter() - started


def study(part):
    """A fifth of the study, with seeds of its own."""
    each = REPLICATIONS // ROUNDS
    return planned([Scenario.from_dict(LONG)], grid(GRID), replications=each, seed=part * each)


@pytest.mark.budget
def test_two_processes_speed_a_sweep_up_as_they_do_a_pure_loop(tmp_path):
    took_s = dict.fromkeys(("loop on one", "loop on two", "sweep on one", "sweep on two"), 0.0)
    with (
        ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("forkserver")) as pool,
        opened(jobs=2) as two,
        opened(jobs=1) as one,
    ):
        # Start-up apart: all workers have loaded everything.
        list(pool.map(burn, range(4)))
        run_missing(planned([Scenario.from_dict(SCENARIO)], grid({"seed": list(range(20))})), two)
        share = RUNS // ROUNDS
        for part in range(ROUNDS):
            took_s["loop on two"] += seconds(lambda: list(pool.map(burn, range(share))))
            took_s["sweep on two"] += seconds(run_missing, study(part), two, folder=tmp_path / f"two-{part}")
            took_s["loop on one"] += seconds(list, map(burn, range(share)))
            took_s["sweep on one"] += seconds(run_missing, study(part), one, folder=tmp_path / f"one-{part}")
            assert table(tmp_path / f"two-{part}") == table(tmp_path / f"one-{part}")
            print(f"{part + 1}/{ROUNDS}:", ", ".join(f"{name} {time_s:.1f} s" for name, time_s in took_s.items()))
    speed_ups = [took_s[f"{what} on one"] / took_s[f"{what} on two"] for what in ("sweep", "loop")]
    print(f"speed-up of the sweep {speed_ups[0]:.2f}, of the loop {speed_ups[1]:.2f}")
    assert took_s["sweep on one"] / RUNS >= 0.3
    assert speed_ups[0] >= LEAST_SHARE * speed_ups[1]


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """The table as two processes leave it that nobody kills."""
    folder = tmp_path_factory.mktemp("plain") / "study"
    sweep(LONG, grid=GRID, replications=REPLICATIONS, jobs=2, folder=folder)
    return table(folder)


def computed(folder, **where):
    done = sweep(LONG, grid=GRID, replications=REPLICATIONS, folder=folder, **where)
    assert len(done.rows) == RUNS
    assert not done.failed
    return table(folder)


def test_processes_of_which_one_is_killed_give_all_rows(tmp_path, plain):
    assert computed(tmp_path / "s", jobs=2, progress=once(lambda: os.kill(active_children()[0].pid, 9))) == plain


def test_a_local_cluster_gives_the_same_bytes(tmp_path, plain):
    pytest.importorskip("distributed", reason=EXTRA)
    assert computed(tmp_path / "s", cluster="local", jobs=2) == plain


def test_workers_by_hand_of_which_one_is_killed_give_all_rows(tmp_path, plain):
    distributed = pytest.importorskip("distributed", reason=EXTRA)
    with cluster_by_hand(tmp_path) as (address, workers):
        with distributed.Client(address) as client:
            client.wait_for_workers(2, timeout=60)
        assert computed(tmp_path / "s", cluster=address, progress=once(workers[0].kill)) == plain
        assert workers[0].wait() == -signal.SIGKILL


def test_a_study_killed_in_the_middle_goes_on_to_the_same_bytes(tmp_path, plain):
    (tmp_path / "scenario.yaml").write_text(YAML)
    command = [sys.executable, "-m", "kvsim.cli.main", "sweep", str(tmp_path / "scenario.yaml")]
    for key, values in GRID.items():
        command += ["--grid", f"{key}={','.join(map(str, values))}"]
    command += ["--set", "workload.requests=4000", "--replications", str(REPLICATIONS), "--json"]
    command += ["-o", str(tmp_path / "s")]
    with subprocess.Popen([*command, "--jobs", "2"], stdout=subprocess.DEVNULL) as process:
        until(lambda: len(list((tmp_path / "s" / PIECES).glob("*.jsonl"))) >= 10, "pieces")
        process.kill()
    subprocess.run([*command, "--jobs", "2", "--resume"], stdout=subprocess.DEVNULL, check=True)
    assert table(tmp_path / "s") == plain
