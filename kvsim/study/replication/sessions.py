"""One trace is one realisation: each variant runs it once, and its sessions are drawn anew from what came out."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kvsim.metrics.histogram import PERCENTILES
from kvsim.metrics.result import Result
from kvsim.scenario.build import build
from kvsim.scenario.building.traces import reshaped
from kvsim.scenario.resolve import Scenario
from kvsim.study.replication.catalogue import better, numbers
from kvsim.study.replication.estimates import Estimate
from kvsim.study.replication.runs.observing import ALONE, LATENCIES
from kvsim.study.statistics.bootstrap import (
    Sessions,
    bootstrap_interval,
    resampled_percentiles,
    resampled_ratio,
    session_draws,
)
from kvsim.study.statistics.intervals import LEVEL, Array, Interval
from kvsim.study.statistics.paired import Difference, told_ratio, verdict
from kvsim.workload.reshape import Reshaped
from kvsim.workload.streams import Streams
from kvsim.workload.trace import TraceTraffic

BLOCKS = 50
"""Into how many rows of neighbours the requests of a trace without sessions are cut (Kuensch, Annals of Statistics 17,
1989): neighbours share a queue, so that single ones would say too little of the spread."""

FEW = 20
"""Fewer sessions than this say little of how sessions differ."""


@dataclass(frozen=True)
class Grouping:
    """Which session each request of each variant is part of, by number; `told` is False for blocks of neighbours."""

    of_requests: list[NDArray[np.int64]]
    count: int
    told: bool

    def drawn(self, seed: int) -> list[Sessions]:
        """The sessions of each variant; the draws are the same for all of them."""
        draws = session_draws(self.count, Streams(seed).generator("bootstrap"))
        return [Sessions(own, draws) for own in self.of_requests]


def grouping(runs: Sequence[tuple[Scenario, int]], requests: Sequence[dict[str, Array]]) -> Grouping:
    """The sessions of a trace, as its requests say or else its rows; a row without one stands alone where others have
    some, and one that comes again is of its session again. `runs` are the scenario and the seed of each variant,
    `requests` its requests by id."""
    ids = [own["id"].astype(np.int64) for own in requests]
    if any((own["session"] != ALONE).any() for own in requests):
        own_numbers = [own["session"].astype(np.int64) for own in requests]
        count = max(int(own.max(initial=0)) for own in own_numbers) + 1
        alone = [np.where(own == ALONE, count + np.arange(own.size), own) for own in own_numbers]
        return Grouping(alone, max(int(own.max(initial=0)) for own in alone) + 1, True)
    told = [_told(scenario, seed) for scenario, seed in runs]
    if any(isinstance(one, str) for own in told for one in own):
        known: dict[str | int, int] = {}
        numbers = [
            np.array([known.setdefault(own[number], len(known)) for number in these], dtype=np.int64)
            for own, these in zip(told, ids, strict=True)
        ]
        return Grouping(numbers, len(known), True)
    rows = max(int(these.max(initial=-1)) for these in ids) + 1
    blocks = min(BLOCKS, rows)
    return Grouping([these * blocks // rows for these in ids], blocks, False)


def _told(scenario: Scenario, seed: int) -> list[str | int]:
    """The session of each request by number, or its row where that has none; empty where rows are no requests."""
    traffic = build(scenario, seed).traffic
    if not isinstance(traffic, TraceTraffic):
        return []
    whose = [name or row for row, name in enumerate(traffic.sessions())]
    left = reshaped(scenario.settings.workload, traffic)
    return [whose[row] for row in left.places(Streams(seed))] if isinstance(left, Reshaped) else whose


@dataclass(frozen=True)
class Traced:
    """One variant's run of the trace: its numbers by name, and in every draw those that are of single requests."""

    metrics: dict[str, float]
    draws: dict[str, Array]


def traced(result: Result, requests: dict[str, Array], sessions: Sessions) -> Traced:
    """What a run leaves for the bootstrap; `requests` are its own by id, in and outside the measured window.

    Where the window is not one stretch of time nothing is drawn.
    """
    if result.scenario_resolved["window.until"]["value"] == "saturated":
        return Traced(numbers(result.metrics), {})
    start_s, end_s = result.metrics["window_s"]
    inside = (requests["arrival_s"] >= start_s) & (requests["arrival_s"] <= end_s)
    hit, asked = (np.where(inside, requests[name], 0.0) for name in ("hit_tokens", "asked_tokens"))
    draws = {"hit_rate": resampled_ratio(hit, asked, sessions)}
    for name in LATENCIES:
        values = np.where(inside, requests[name], np.nan)
        there = ~np.isnan(values)
        draws[f"{name}.mean"] = resampled_ratio(np.where(there, values, 0.0), there, sessions)
        for percent, drawn in zip(PERCENTILES, resampled_percentiles(values, PERCENTILES, sessions), strict=True):
            draws[f"{name}.p{percent}"] = drawn
    return Traced(numbers(result.metrics), draws)


def session_estimates(ours: Traced, baseline: Traced | None, count: int, level: float = LEVEL) -> dict[str, Estimate]:
    """Every metric of a variant; those of requests with intervals from the draws, differences from the same draws.

    `count` is how many sessions there are.
    """
    made = {}
    for key, value in ours.metrics.items():
        draws = ours.draws.get(key)
        single = Interval(value, None, None, 1, level)
        interval = single if draws is None else bootstrap_interval(value, draws, count, level)
        difference = None
        if baseline is not None and key in baseline.metrics:
            apart = value - baseline.metrics[key]
            others = baseline.draws.get(key)
            if draws is None or others is None:
                difference = Difference(Interval(apart, None, None, 1, level), "not compared")
            else:
                between = bootstrap_interval(apart, draws - others, count, level)
                some = np.isfinite(draws) & np.isfinite(others)
                difference = Difference(between, verdict(between, better(key)), told_ratio(draws[some], others[some]))
        made[key] = Estimate(interval, difference=difference)
    return made


def session_notes(groups: Grouping, trace: str) -> list[str]:
    """What a reader of such intervals should know."""
    what = "sessions, each with all its requests"
    if not groups.told:
        what = "blocks of neighbouring requests, for want of sessions"
    said = [
        f"{trace} is one realisation: it ran once for each variant, and intervals are from a bootstrap of its "
        f"{groups.count:,} {what}. They say how much hangs on which of them came, not what another queue would have "
        "done; numbers that are not of single requests have none."
    ]
    if groups.count < FEW:
        said.append(f"{groups.count} of them are few: these intervals are too short as a rule.")
    return said
