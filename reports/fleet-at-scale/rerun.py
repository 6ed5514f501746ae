"""Runs the fleets of this report again and measures what each takes: `python rerun.py [NAME ...]` (default: all).

Of each run, in a folder of its name: `summary.json`, which `kvsim run --json` prints, and `cost.json`, what it took.
Further options go to kvsim, such as `--set workload.requests=1000`. README.md is written anew from what is there.
"""

import json
import os
import pickle
import re
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SCENARIOS = HERE.parent.parent / "scenarios"
KVSIM = (sys.executable, "-m", "kvsim.cli.main")
HOST, PORT = "127.0.0.1", 8786
ADDRESS = f"tcp://{HOST}:{PORT}"

RUNS = {
    "least-kv": ("fleet-at-scale.yaml", "--variant", "least-kv"),
    "prefix-aware": ("fleet-at-scale.yaml", "--variant", "prefix-aware"),
    "round-robin-1000": ("fleet-of-1000.yaml", "--cluster", ADDRESS),
}


def started(*command: str, **streams: object) -> subprocess.Popen[bytes]:
    """A process that runs from now on."""
    return subprocess.Popen(command, **streams)  # type: ignore[call-overload, no-any-return]


def taken(process: subprocess.Popen[bytes]) -> dict[str, float]:
    """Wait for a process; what it took. Linux counts the peak of memory in KiB."""
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return {"cpu_s": round(used.ru_utime + used.ru_stime, 1), "peak_memory_bytes": used.ru_maxrss * 1024}


def workers(count: int) -> list[subprocess.Popen[bytes]]:
    """A scheduler on loopback and so many workers of one thread, as a user starts them by hand."""
    with socket.socket() as probe:
        if not probe.connect_ex((HOST, PORT)):
            raise SystemExit(f"{ADDRESS}: somebody listens there already; end that scheduler first")
    dask = str(Path(sys.executable).with_name("dask"))
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    begun = [started(dask, "scheduler", "--host", HOST, "--port", str(PORT), "--no-dashboard", **quiet)]
    time.sleep(5)
    worker = (dask, "worker", ADDRESS, "--nworkers", "1", "--nthreads", "1", "--memory-limit", "0", "--no-nanny")
    begun += [started(*worker, "--no-dashboard", **quiet) for _ in range(count)]
    time.sleep(5)
    return begun


def measured(name: str, *more: str) -> None:
    """One of `RUNS`, with `more` options."""
    scenario, *options = RUNS[name]
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    cluster = workers(2) if "--cluster" in options else []
    command = [*KVSIM, "run", str(SCENARIOS / scenario), *options, *more, "--json"]
    began = time.monotonic()
    with (folder / "summary.json").open("wb") as out:
        run = started(*command, stdout=out)
        processes = {"run": taken(run)}
    wall_s = time.monotonic() - began
    for number, one in enumerate(cluster):
        one.terminate()
        processes[f"worker {number}" if number else "scheduler"] = taken(one)
    if run.returncode:
        raise SystemExit(f"{name}: kvsim ended with {run.returncode}")
    summary = json.loads((folder / "summary.json").read_text())
    processor = re.search(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text())
    cost = {
        "command": " ".join(["kvsim run", f"scenarios/{scenario}", *options, *more, "--json"]),
        "requests": summary["metrics"]["arrived"],
        "wall_s": round(wall_s, 1),
        "processes": processes,
        "processor": processor[1] if processor else None,
        "cores": os.cpu_count(),
        "python": sys.version.split()[0],
    }
    (folder / "cost.json").write_text(json.dumps(cost, indent=2) + "\n")


def moved(*more: str) -> None:
    """What pieces of the fleet of 1,000 cost that serve few replicas, and what is sent for them."""
    from kvsim.scenario import load
    from kvsim.study.fleet import PARTS, Part, work

    def scenario(*changes: str) -> Any:
        given = [text for text in more if text != "--set"]
        return load(SCENARIOS / RUNS["round-robin-1000"][0], overrides=[*given, *changes])

    requests = scenario().settings.workload.requests
    found = []
    for replicas, among in ((1, requests), (40, requests), (40, requests // 10)):
        piece = Part(
            scenario(f"workload.requests={among}"), 0, range(replicas), stepwise=False, check=False, keep=False
        )
        began = time.process_time()
        back = len(pickle.dumps(work(piece)))
        cpu_s, sent = round(time.process_time() - began, 2), len(pickle.dumps(piece))
        found.append({"replicas": replicas, "requests": among, "cpu_s": cpu_s, "sent_bytes": sent, "back_bytes": back})
    (HERE / "moved.json").write_text(json.dumps({"parts": PARTS, "pieces": found}, indent=2) + "\n")


if __name__ == "__main__":
    options = [option for option in sys.argv[1:] if option not in RUNS]
    for name in [name for name in sys.argv[1:] if name in RUNS] or list(RUNS):
        measured(name, *options)
        if name == "round-robin-1000":
            moved(*options)
    from told import readme

    (HERE / "README.md").write_text(readme(HERE))
