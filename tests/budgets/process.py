"""A command as a whole process: CPU seconds and peak memory, from the operating system's own accounts."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCENARIO = ROOT / "scenarios" / "bench-w.yaml"


@dataclass(frozen=True)
class Cost:
    """What a finished process used."""

    cpu_s: float
    peak_mb: float


# The system counts for a child also what its parent was as large as before the child became another program; so a small
# program is the parent, not the tests.
METER = """
import os, sys
silent = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=silent)
_, status, usage = os.wait4(child, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, usage.ru_maxrss)
"""


def cost_of(*command: str) -> Cost:
    """Run `command` once; it must succeed."""
    meter = [sys.executable, "-S", "-c", METER, *command]
    told = subprocess.run(meter, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    assert told[0] == "0", command
    # ru_maxrss counts KiB on Linux and bytes on macOS.
    scale = 1e6 if sys.platform == "darwin" else 1e3
    return Cost(float(told[1]), int(told[2]) / scale)


def best_of(times: int, *command: str) -> Cost:
    """The least of several runs: what the work costs when the machine is not doing something else."""
    costs = [cost_of(*command) for _ in range(times)]
    return Cost(min(cost.cpu_s for cost in costs), min(cost.peak_mb for cost in costs))


def kvsim(*arguments: str) -> tuple[str, ...]:
    """The command line of kvsim under the interpreter of the tests."""
    return (sys.executable, "-m", "kvsim.cli.main", *arguments)


def bench_run(trace: Path, *flags: str) -> tuple[str, ...]:
    """`kvsim run` of the bench scenario on `trace`."""
    return kvsim("run", str(SCENARIO), "--set", f"workload.trace={trace}", *flags, "--json")
