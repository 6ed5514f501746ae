"""Runs the program that measures, keeps what it writes line by line, and looks whether it is whole."""

import subprocess
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kvsim.errors import NoGpuError, RunError
from kvsim.microbench.results import Run, read_results

NO_GPU = 77
WRONG_USE = 2
PRESETS = {"quick": 60.0, "full": 180.0}
"""Presets and the seconds that each may take; `tiny` is the tests'."""
TRACES = Path(__file__).parent / "traces"
"""Allocation traces that kvsim wrote, replayed unless others are given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is to be measured. `traces`: allocation traces to replay; `budget_s` None: the preset's."""

    preset: str = "quick"
    budget_s: float | None = None
    only: Sequence[str] = ()
    seed: int = 1
    cublas: str | None = None
    traces: Sequence[Path] = field(default_factory=lambda: sorted(TRACES.glob("*.txt")))
    verify_only: bool = False

    def arguments(self) -> list[str]:
        """The program's command line."""
        words = ["--preset", self.preset, "--seed", str(self.seed)]
        if self.budget_s is not None:
            words += ["--budget-s", f"{self.budget_s:g}"]
        if self.only:
            words += ["--only", ",".join(self.only)]
        if self.cublas is not None:
            words += ["--cublas", self.cublas]
        for trace in self.traces:
            words += ["--frag", str(trace)]
        return [*words, "--verify-only"] if self.verify_only else words


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to, by benchmark: points, those whose output was wrong, skipped cases, errors."""

    run: Run
    reasons: Sequence[str]
    """Why cases were skipped and what failed, each once."""

    def count(self, bench: str) -> dict[str, int]:
        """Of one benchmark."""
        points = [point for point in self.run.points if point.bench == bench]
        return {
            "points": len(points),
            "wrong": sum(point.verified is False for point in points),
            "skipped": sum(skip["bench"] == bench for skip in self.run.skipped),
            "errors": sum(error["bench"] == bench for error in self.run.errors),
        }

    @property
    def benches(self) -> list[str]:
        """Those that were asked for, in the order in which they were met first."""
        met = [point.bench for point in self.run.points]
        return list(dict.fromkeys([*met, *(one["bench"] for one in (*self.run.skipped, *self.run.errors))]))

    @property
    def failed(self) -> bool:
        """Something was wrong: an output, or a call."""
        return bool(self.run.errors) or any(point.verified is False for point in self.run.points)


def measure(program: Path, order: Order, to: Path, told: Callable[[int], None] = lambda lines: None) -> Outcome:
    """Run `program` and write what it says to the file `to`, line by line; `told` hears how many lines there are.

    Raises NoGpuError where there is no usable GPU (and leaves no file), RunError where the run was cut short (what it
    wrote stays) or the program refused its command line.
    """
    to.parent.mkdir(parents=True, exist_ok=True)
    with (
        to.open("w", encoding="utf-8") as file,
        subprocess.Popen(
            [str(program), *order.arguments()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        ) as process,
    ):
        assert process.stdout is not None
        assert process.stderr is not None
        for number, line in enumerate(process.stdout, start=1):
            file.write(line)
            file.flush()
            told(number)
        said = process.stderr.read().strip()
    if process.returncode == NO_GPU:
        to.unlink()
        raise NoGpuError(said.removeprefix("microbench: ") or "no usable GPU")
    if process.returncode not in (0, 1):
        how = f"signal {-process.returncode}" if process.returncode < 0 else f"exit code {process.returncode}"
        raise RunError(f"{to}: {program} ended with {how} before it was done{': ' + said if said else ''}")
    return _whole(to, process.returncode)


def _whole(path: Path, code: int) -> Outcome:
    run = read_results(path).runs[-1]
    if run.end is None:
        why = run.errors[-1]["message"] if run.errors else "it wrote no end"
        raise RunError(f"{path}: the run was cut short: {why}")
    if run.end.points != len(run.points):
        raise RunError(f"{path}: has {len(run.points)} points, and its end says {run.end.points}")
    reasons = Counter(one["reason"] for one in run.skipped) + Counter(one["message"] for one in run.errors)
    outcome = Outcome(run, list(reasons))
    if (code == 1) != outcome.failed:
        raise RunError(f"{path}: the program ended with exit code {code}, and its lines say otherwise")
    return outcome


def summary(outcome: Outcome) -> dict[str, Any]:
    """For `--json`."""
    return {
        "device": outcome.run.env.device,
        "backend": outcome.run.env.backend,
        "complete": outcome.run.end is not None and outcome.run.end.complete,
        "benches": {bench: outcome.count(bench) for bench in outcome.benches},
        "reasons": list(outcome.reasons),
    }
