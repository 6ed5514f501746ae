"""What is told of the points of a sweep: columns of its runs, under the names people know them by."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from kvsim.errors import InputError
from kvsim.metrics.names import OF_TENANTS, metric_names
from kvsim.metrics.waste import waste_share
from kvsim.scenario.messages import closest, suggestion
from kvsim.step import CLASSES
from kvsim.study.sweeps.sweep import Sweep
from kvsim.units import GIB


@dataclass(frozen=True)
class Measure:
    """A column of the runs: what people call it, its unit once it is multiplied by `scale`, and which end is good."""

    name: str
    label: str
    unit: str = ""
    scale: float = 1
    better: Literal["low", "high", ""] = ""

    @property
    def title(self) -> str:
        """The label with its unit, as an axis has it."""
        return f"{self.label}, {self.unit}" if self.unit else self.label

    def of(self, row: Mapping[str, Any]) -> float | None:
        """Its number in a run's row, in its unit; None where it has none."""
        value = _MADE[self.name](row) if self.name in _MADE else row.get(self.name)
        return value * self.scale if isinstance(value, int | float) else None


WASTE = "waste_share"
"""Not a column: of the slots neither free nor cached, the share that holds no valid KV of a live request."""

MET = Measure("met_share", "within goals", "%", 100, "high")
"""Not a column: of the requests that finish, the share that meets every goal; only where goals are set."""

GOODPUT = Measure("goodput_per_s", "goodput", "/s", 1, "high")
OUTPUT = Measure("output_tokens_per_s", "output tokens", "/s", 1, "high")
TTFT = Measure("ttft_s.p99", "TTFT p99", "s", 1, "low")

KNOWN: Mapping[str, Measure] = {
    one.name: one
    for one in (
        Measure("mean_running", "running"),
        Measure("max_running", "most running"),
        Measure("mean_waiting", "waiting", "", 1, "low"),
        Measure(WASTE, "waste", "%", 100, "low"),
        Measure("preemptions", "preempted", "", 1, "low"),
        Measure("hit_rate", "hit rate", "%", 100, "high"),
        *(Measure(f"mean_share.{name}", name, "%", 100) for name in CLASSES),
        *(Measure(f"peak_share.{name}", f"{name} at most", "%", 100) for name in CLASSES),
        *(Measure(f"device_bytes.{name}", name, "GiB", 1 / GIB) for name in ("card", "weights", "pool")),
        Measure("pool_tokens", "pool", "tokens"),
        Measure("upkeep.table_bytes", "block tables", "KiB", 1 / 1024, "low"),
        Measure("ttft_s.p50", "TTFT p50", "s", 1, "low"),
        TTFT,
        Measure("tpot_s.p50", "TPOT p50", "ms", 1000, "low"),
        Measure("tpot_s.p99", "TPOT p99", "ms", 1000, "low"),
        Measure("e2e_s.p99", "E2E p99", "s", 1, "low"),
        OUTPUT,
        GOODPUT,
        MET,
    )
}
"""Measures with names of their own; any other column of the runs has its name."""

OF_RUNS = ("run", "replication", "seed", "queue_growth", "queue_growth_error")
"""Columns of numbers that are no metrics."""

TOLD = (TTFT.name, OUTPUT.name, GOODPUT.name, MET.name, WASTE, "tpot_s.p99", "preemptions", "hit_rate", "mean_running")
"""What is told unless somebody chooses, most wanted first; those that no run has are left out."""


def measures(rows: Sequence[Mapping[str, Any]], names: Sequence[str] | None = None) -> list[Measure]:
    """The measures of these names, or those of `TOLD` that some run has."""
    if names is None:
        return [KNOWN[name] for name in TOLD if any(KNOWN[name].of(row) is not None for row in rows)]
    return [KNOWN.get(name, Measure(name, name)) for name in names]


def check_measures(sweep: Sweep, names: Sequence[str]) -> None:
    """Raise InputError for the first name that no run of this sweep can have, done or not."""
    classes = dict.fromkeys(name for run in sweep.runs for name in run.scenario.settings.slo.classes or ())
    axes = (one.key for one in sweep.axes if one.numbers is not None)
    columns = [*_MADE, *metric_names(list(classes)), *axes, *OF_RUNS]
    for name in names:
        if name not in columns and not name.startswith(OF_TENANTS):
            near = closest(name, columns)
            right = suggestion(name, near or TOLD) + ("" if near else ", and every number of kvsim run --json")
            raise InputError(f"--metrics: {name} is no number of these runs; {right}")


def _waste(row: Mapping[str, Any]) -> float | None:
    share = {name: row.get(f"mean_share.{name}") for name in CLASSES}
    return None if None in share.values() else waste_share({"mean_share": share})


def _met(row: Mapping[str, Any]) -> float | None:
    good, finished = row.get(GOODPUT.name), row.get("requests_per_s")
    return None if good is None or not finished else float(good / finished)


_MADE: Mapping[str, Callable[[Mapping[str, Any]], float | None]] = {WASTE: _waste, MET.name: _met}
"""Measures that are made of several columns."""
