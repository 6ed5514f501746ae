"""The largest rate that a candidate bears: simulated at one rate after another, always on the same random streams.

A rate is borne where every goal is met in the mean of the replications and the queue does not grow: saturation is seen
in the queue itself, not in a run that takes too long.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kvsim.metrics.cost import per_million
from kvsim.scenario.messages import Origin
from kvsim.scenario.resolve import Scenario
from kvsim.study.planning.goals import Goal, unmet
from kvsim.study.planning.rates.screen import Screened, screen
from kvsim.study.planning.rates.search import TOLERANCE, Found, searched_rate
from kvsim.study.replication.runs.asking import Asking, answered
from kvsim.study.replication.runs.replicate import Executor, Piece, Replicate, Serial
from kvsim.study.replication.trust import judged
from kvsim.study.seeds import replication_seed
from kvsim.units import rate_text

AT_ONCE = 3
"""Rates that are tried side by side. It decides which ones are tried, so it does not follow the number of workers."""

REPLICATIONS = 3

SCREENED_SHARE = 0.8
"""Of the screened rate, which knows no queue and no burst, where the search begins."""

LEAST_STAYS = 10
"""A run that lasts fewer times as long as a request stays is all beginning and end, and tells little of a rate."""

PLAN = Origin("list", "plan")
"""Where a plan's own changes to a scenario are written."""


@dataclass(frozen=True)
class Served:
    """What the traffic that is sent comes to, per second: its rate times the mean of its requests or sessions.

    Requests that are refused or given up count nothing, those that the horizon cuts off count whole; so it does not
    depend on where the measured window begins and ends, and is the same for all candidates that refuse nobody.
    """

    output_tokens_per_s: float
    requests_per_s: float


@dataclass(frozen=True)
class Trial:
    """What became of a candidate at one rate: `values` are the means of what the goals are about, in their order.

    `growth` is the share of the arrivals by which the queue grew (None: the runs show no steady stretch); `runs` are
    the metrics of each replication; `served` is what leaves at this rate, by which costs are reckoned;
    `notes` are what the runs say of themselves, each once.
    """

    rate_per_s: float
    values: Sequence[float | None]
    unmet: Sequence[Goal]
    saturated: bool
    growth: float | None
    runs: Sequence[Mapping[str, Any]]
    served: Served | None = None
    notes: Sequence[str] = ()

    @property
    def borne(self) -> bool:
        """Every goal is met, and the queue does not grow."""
        return not self.saturated and not self.unmet

    @property
    def stays(self) -> float:
        """How many times as long as a request stays the runs are measured: few show no steady stretch."""
        measured_s, stay_s = self.mean("measured_s"), self.mean("e2e_s", "mean")
        return measured_s / stay_s if measured_s and stay_s else 0.0

    def cost(self, name: str) -> float | None:
        """One of the `cost` metrics; those by the million are of what is `served`.

        Where the queue grows, or requests wait for answers, nobody knows what is served: they are then of what came out
        in the measured windows.
        """
        served, hourly = self.served, self.mean("cost", "usd_per_hour")
        if served is not None and name == "usd_per_million_output_tokens":
            return per_million(hourly, served.output_tokens_per_s)
        if served is not None and name == "usd_per_million_requests":
            return per_million(hourly, served.requests_per_s)
        return self.mean("cost", name)

    def mean(self, *path: str) -> float | None:
        """The mean of a metric over the replications; None where one of them has none."""
        return mean([_inner(run, path) for run in self.runs])


@dataclass(frozen=True)
class Sustained:
    """The answer for one candidate: `best` is the trial at the largest rate that is borne, None where none is."""

    screened: Screened | None
    found: Found
    trials: Mapping[float, Trial]

    @property
    def best(self) -> Trial | None:
        """See above."""
        return None if self.found.borne is None else self.trials[self.found.borne]

    @property
    def first_not(self) -> Trial | None:
        """The trial at the smallest rate above that is not borne: it says what binds."""
        return None if self.found.not_borne is None else self.trials[self.found.not_borne]


def sustained_rate(
    scenario: Scenario,
    goals: Sequence[Goal],
    *,
    executor: Executor | None = None,
    replications: int = REPLICATIONS,
    seed: int | None = None,
    tolerance: float = TOLERANCE,
) -> Sustained:
    """Search for the largest `workload.rate` at which `scenario` meets the `goals` and keeps up.

    All rates run on the same random streams, so that the answer does not jump with chance. `executor` runs the trials
    (None: this process); the answer does not depend on it. Raises DoesNotFitError where the candidate has no room for
    KV, InputError where its traffic has no rate.
    """
    screened = screen(scenario, seed)
    seeds = seeds_of(scenario, replications, seed)
    [found] = answered([sustaining(scenario, goals, seeds, screened, tolerance)], executor or Serial())
    return found


def sustaining(
    scenario: Scenario, goals: Sequence[Goal], seeds: Sequence[int], screened: Screened | None, tolerance: float
) -> Asking[Sustained]:
    """The same as a question to be asked beside others; the search begins at what was screened."""
    guess = SCREENED_SHARE * screened.rate_per_s if screened else scenario.settings.workload.rate or 1.0
    trials: dict[float, Trial] = {}
    search = searched_rate(guess, tolerance=tolerance, at_once=AT_ONCE)
    rates = next(search)
    while True:
        for one in (yield from trying(scenario, rates, goals, seeds)):
            trials[one.rate_per_s] = one
        try:
            rates = search.send([trials[rate].borne for rate in rates])
        except StopIteration as end:
            return Sustained(screened, end.value, trials)


def tried(
    scenario: Scenario,
    rates: Sequence[float],
    goals: Sequence[Goal],
    *,
    executor: Executor | None = None,
    replications: int = REPLICATIONS,
    seed: int | None = None,
) -> list[Trial]:
    """A trial at each of the rates, on the same random streams."""
    [trials] = answered([trying(scenario, rates, goals, seeds_of(scenario, replications, seed))], executor or Serial())
    return trials


def trying(
    scenario: Scenario, rates: Sequence[float], goals: Sequence[Goal], seeds: Sequence[int], *, as_it_is: bool = False
) -> Asking[list[Trial]]:
    """The same as a question; `as_it_is`, the traffic has the rate already."""
    at = [scenario if as_it_is else at_rate(scenario, rate) for rate in rates]
    # A worker of a cluster may work in another folder.
    runs = yield [Piece(one.in_folder(os.getcwd()), own) for one in at for own in seeds]
    parts = [runs[start : start + len(seeds)] for start in range(0, len(runs), len(seeds))]
    traffic = at[0].settings.workload if at else None
    sessions = traffic is not None and traffic.rate is not None and traffic.sessions is not None
    return [_trial(rate, part, goals, sessions=sessions) for rate, part in zip(rates, parts, strict=True)]


def at_rate(scenario: Scenario, rate_per_s: float) -> Scenario:
    """The scenario with its traffic at this rate; InputError where it has none."""
    return scenario.changed({"workload.rate": rate_text(rate_per_s)}, PLAN)


def seeds_of(scenario: Scenario, replications: int, seed: int | None, purpose: str = "replication") -> list[int]:
    """The seeds of the replications, the same for every candidate and rate."""
    first = scenario.seed if seed is None else seed
    return [replication_seed(first, number, purpose) for number in range(replications)]


def mean(values: Sequence[float | None]) -> float | None:
    """The mean; None where a value is missing, or all are."""
    there = [value for value in values if value is not None]
    return sum(there) / len(there) if there and len(there) == len(values) else None


def _trial(rate: float, runs: Sequence[Replicate], goals: Sequence[Goal], *, sessions: bool) -> Trial:
    values = [mean([goal.value(run.metrics) for run in runs]) for goal in goals]
    queue = judged(runs)
    # Without a steady stretch to judge, arrivals were over long before the work was.
    saturated = queue is None or queue.saturated
    return Trial(
        rate,
        values,
        unmet(goals, values),
        saturated=saturated,
        growth=None if queue is None else queue.growth,
        runs=[run.metrics for run in runs],
        served=None if saturated else _served(rate, runs, sessions=sessions),
        notes=list(dict.fromkeys(note for run in runs for note in run.notes)),
    )


def _served(rate: float, runs: Sequence[Replicate], *, sessions: bool) -> Served | None:
    """What leaves where `rate` requests, or `sessions`, come in a second; None where they have no rate."""
    came = sum(run.sessions if sessions else run.metrics["arrived"] for run in runs)
    if not rate or not came:
        return None
    lost = sum(run.metrics[end] for run in runs for end in ("rejected", "cancelled", "aborted"))
    requests = sum(run.metrics["arrived"] for run in runs) - lost
    return Served(rate * sum(run.served_tokens for run in runs) / came, rate * requests / came)


def _inner(metrics: Mapping[str, Any], path: Sequence[str]) -> float | None:
    value: Any = metrics
    for name in path:
        value = None if value is None else value.get(name)
    return None if value is None else float(value)
