"""The largest rate that a candidate bears: simulated at one rate after another, always on the same random streams.

A rate is borne where every goal is met in the mean of the replications and the queue does not grow: saturation is seen
in the queue itself, not in a run that takes too long.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kvsim.scenario.messages import Origin
from kvsim.scenario.resolve import Scenario
from kvsim.study.planning.goals import Goal, unmet
from kvsim.study.planning.screen import Screened, screen
from kvsim.study.planning.search import TOLERANCE, Found, largest_rate
from kvsim.study.replication.runs.replicate import Executor, Piece, Replicate, Serial, simulate
from kvsim.study.replication.trust import judged
from kvsim.study.seeds import replication_seed
from kvsim.units import rate_text

AT_ONCE = 3
"""Rates that are tried side by side. It decides which ones are tried, so it does not follow the number of workers."""

REPLICATIONS = 3

SCREENED_SHARE = 0.8
"""Of the screened rate, which knows no queue and no burst, where the search begins."""

_PLAN = Origin("list", "plan")


@dataclass(frozen=True)
class Trial:
    """What became of a candidate at one rate: `values` are the means of what the goals are about, in their order."""

    rate_per_s: float
    values: Sequence[float | None]
    unmet: Sequence[Goal]
    saturated: bool

    @property
    def borne(self) -> bool:
        """Every goal is met, and the queue does not grow."""
        return not self.saturated and not self.unmet


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
    guess = SCREENED_SHARE * screened.rate_per_s if screened else scenario.settings.workload.rate or 1.0
    trials: dict[float, Trial] = {}

    def bears(rates: Sequence[float]) -> list[bool]:
        for one in tried(scenario, rates, goals, executor=executor, replications=replications, seed=seed):
            trials[one.rate_per_s] = one
        return [trials[rate].borne for rate in rates]

    found = largest_rate(bears, guess, tolerance=tolerance, at_once=AT_ONCE)
    return Sustained(screened, found, trials)


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
    hands = executor or Serial()
    first = scenario.seed if seed is None else seed
    seeds = [replication_seed(first, number) for number in range(replications)]
    at = [scenario.changed({"workload.rate": rate_text(rate)}, _PLAN) for rate in rates]
    runs = list(hands.map(simulate, [Piece(one, own) for one in at for own in seeds]))
    parts = [runs[start : start + replications] for start in range(0, len(runs), replications)]
    return [_trial(rate, part, goals) for rate, part in zip(rates, parts, strict=True)]


def _trial(rate: float, runs: Sequence[Replicate], goals: Sequence[Goal]) -> Trial:
    values = [_mean([goal.value(run.metrics) for run in runs]) for goal in goals]
    queue = judged(runs)
    # Without a steady stretch to judge, arrivals were over long before the work was.
    return Trial(rate, values, unmet(goals, values), saturated=queue is None or queue.saturated)


def _mean(values: Sequence[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return sum(there) / len(there) if len(there) == len(values) else None
