"""The whole of `kvsim compare-run`: find the simulated side, read the measured one, run, compare."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvsim.errors import InputError
from kvsim.metrics.result import SCHEMA, Result
from kvsim.scenario import Scenario, load
from kvsim.study.recorded.compare import Comparison, compare
from kvsim.study.recorded.readers import read_measured
from kvsim.study.recorded.replay import recorded
from kvsim.study.recorded.simulated import simulated
from kvsim.study.reporter import Progress
from kvsim.study.single import run

YAML = (".yaml", ".yml")
REQUESTS, TIMESERIES = "_requests.csv", "_timeseries.csv"
SENT_TOGETHER = 0.02
"""Counts of requests that differ by more than this share are of different traffic."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A comparison with the run behind it and what else is to be said."""

    comparison: Comparison
    result: Result
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """The object that `kvsim compare-run --json` prints."""
        return {
            "schema": SCHEMA,
            "name": self.result.name,
            "version": self.result.version,
            "provenance": self.result.provenance,
            "expected_error": dict(self.result.expected_error),
            "notes": list(self.notes),
            **self.comparison.as_json(),
        }


def compare_run(
    side: Path,
    measured: Sequence[Path],
    *,
    gpu: str | None = None,
    overrides: Sequence[str] = (),
    variant: str | None = None,
    seed: int | None = None,
    scrape_interval_s: float | None = None,
    progress: Progress | None = None,
) -> Compared:
    """Simulate `side`, the META file of a recorded run or a scenario, and lay it beside what was `measured`.

    With META the first of `measured` lists the requests that are simulated. A table NAME_requests.csv brings
    NAME_timeseries.csv along. Raises InputError naming file and place.
    """
    paths = [*measured, *_beside(measured)]
    known = read_measured(paths, interval_s=scrape_interval_s)
    scenario, notes = _scenario(side, measured[0], gpu, overrides, variant)
    if scenario.settings.fleet is not None:
        raise InputError(f"{side}: is a fleet; what was measured is laid beside one replica: leave fleet out")
    if side.suffix not in YAML and known.requests is None:
        raise InputError(f"{measured[0]}: lists no requests; with META the first measured file is the requests' table")
    result = run(scenario, seed=seed, progress=progress)
    if side.suffix not in YAML:
        result.provenance["workload"] = f"requests as recorded in {measured[0].name}"
    ours = simulated(result, None if known.series is None else known.series.time_s)
    if known.requests is not None and ours.requests is not None:
        sent, served = len(known.requests), len(ours.requests)
        if abs(served - sent) > SENT_TOGETHER * sent:
            notes = (*notes, f"{sent:,} requests were measured and {served:,} finished in the simulation: "
                     "set workload.trace to the measured ones to compare the same traffic.")  # fmt: skip
    return Compared(compare(known, ours), result, (*notes, *known.notes, *result.notes))


def _scenario(
    side: Path, requests: Path, gpu: str | None, overrides: Sequence[str], variant: str | None
) -> tuple[Scenario, tuple[str, ...]]:
    if side.suffix in YAML:
        if gpu is not None:
            raise InputError(f"--gpu {gpu}: {side} is a scenario and names its GPU; change it with --set gpu=NAME")
        return load(side, overrides=overrides, variant=variant), ()
    if variant is not None:
        raise InputError(f"--variant {variant}: {side} is no scenario and has no variants")
    found = recorded(side, requests, gpu=gpu, overrides=overrides)
    return found.scenario, found.notes


def _beside(measured: Sequence[Path]) -> list[Path]:
    """The time series that a recorded run keeps beside its requests, unless one was named."""
    if len(measured) != 1 or not measured[0].name.endswith(REQUESTS):
        return []
    series = measured[0].with_name(measured[0].name.removesuffix(REQUESTS) + TIMESERIES)
    return [series] if series.is_file() else []
