"""Where the warm-up ends, found on runs of their own before anything is measured."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from kvsim.metrics.tables import Dropped
from kvsim.request import PS_PER_S
from kvsim.scenario.messages import Origin
from kvsim.scenario.resolve import Scenario
from kvsim.study.replication.runs.replicate import Executor, Piece, observed_run
from kvsim.study.seeds import replication_seed
from kvsim.study.statistics.intervals import Array
from kvsim.study.statistics.warmup import mser5_time

PILOTS = 5
"""Runs whose average shows the transient; one alone is too noisy for it (Hoad, Robinson and Davies, Journal of the
Operational Research Society 61, 2010)."""

FILL_POINTS = 500
"""Points in time at which the fill of the cache is looked at, from the start to the last arrival."""

_PURPOSE = "warm-up"


@dataclass(frozen=True)
class WarmUp:
    """When it ends (picoseconds), which variant and which of its series took longest, and which had not settled."""

    cut_ps: int
    slowest: str
    unsettled: tuple[str, ...]


@dataclass(frozen=True)
class Pilot:
    """What one run tells of its transient: TTFT in the order of arrival (NaN: none), and the fill over time."""

    arrival_s: Array
    ttft_s: Array
    filled: Array


def pilot(piece: Piece) -> Pilot:
    """Run a piece for its transient."""
    observed = observed_run(piece, Dropped()).observed
    requests = observed.by_request()
    last_ps = round(requests["arrival_s"][-1] * PS_PER_S) if requests["arrival_s"].size else 0
    filled = observed.filled.means(0, last_ps, FILL_POINTS) if last_ps else np.empty(0)
    return Pilot(requests["arrival_s"], requests["ttft_s"], filled)


def found_warmup(
    variants: Sequence[tuple[str, Scenario]], *, seed: int | None, executor: Executor, check: bool = False
) -> WarmUp:
    """The latest cut that MSER-5 makes in any variant, on the latency (TTFT) or on the fill of the cache.

    One for all, so that all are measured over the same traffic. Each series is the average of `PILOTS` runs, on seeds
    that the study itself does not use; of one run where the traffic is a trace.
    """
    pieces = [
        Piece(
            with_warmup(scenario, 0),
            replication_seed(scenario.seed if seed is None else seed, number, _PURPOSE),
            check=check,
        )
        for _, scenario in variants
        for number in range(_pilots(scenario))
    ]
    pilots = list(executor.map(pilot, pieces))
    cuts: list[tuple[float, str]] = []
    unsettled = []
    first = 0
    for name, scenario in variants:
        own = pilots[first : first + _pilots(scenario)]
        first += len(own)
        for series, (time_s, values) in (("TTFT", _latency(own)), ("cache fill", _fill(own))):
            cut_s, settled = mser5_time(time_s, values) if values.size else (0.0, True)
            cuts.append((cut_s, f"{series} of {name}"))
            if not settled:
                unsettled.append(f"{series} of {name}")
    cut_s, slowest = max(cuts, key=lambda cut: cut[0])
    return WarmUp(round(cut_s * PS_PER_S), slowest, tuple(unsettled))


def with_warmup(scenario: Scenario, cut_ps: int) -> Scenario:
    """The same scenario with this much left out at the start."""
    window = scenario.settings.window.model_copy(update={"warmup": cut_ps})
    settings = scenario.settings.model_copy(update={"window": window})
    return replace(scenario, settings=settings, origins={**scenario.origins, "window.warmup": Origin("", "--warmup")})


def of_warmup(warmup: WarmUp | None) -> list[str]:
    """What to say of a warm-up that was found."""
    if warmup is None:
        return []
    said = [
        f"The first {warmup.cut_ps / PS_PER_S:,.4g} s are left out as warm-up, by MSER-5 on runs of their own (last to "
        f"settle: {warmup.slowest})."
    ]
    if warmup.unsettled:
        said.append(
            f"MSER-5 found no end of the warm-up within the first half of the run: {', '.join(warmup.unsettled)}. "
            "Simulate more requests."
        )
    return said


def _pilots(scenario: Scenario) -> int:
    return PILOTS if scenario.settings.workload.trace is None else 1


def _latency(pilots: Sequence[Pilot]) -> tuple[Array, Array]:
    count = min(one.ttft_s.size for one in pilots)
    latencies = np.array([one.ttft_s[:count] for one in pilots])
    some = ~np.isnan(latencies).all(axis=0)
    means = np.nanmean(latencies[:, some], axis=0) if some.any() else np.empty(0)
    return np.mean([one.arrival_s[:count] for one in pilots], axis=0)[some], means


def _fill(pilots: Sequence[Pilot]) -> tuple[Array, Array]:
    fills = [one.filled for one in pilots if one.filled.size]
    if not fills:
        return np.empty(0), np.empty(0)
    last_s = np.mean([one.arrival_s[-1] for one in pilots if one.arrival_s.size])
    return np.arange(FILL_POINTS) * (last_s / FILL_POINTS), np.mean(fills, axis=0)
