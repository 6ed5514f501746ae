"""A plan: which candidates meet the goals under the traffic, with how few GPUs and at what cost, and what is left.

Screened analytically, simulated on common random numbers, the best once more on seeds that nobody has seen.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kvsim.errors import DoesNotFitError
from kvsim.scenario.build import build
from kvsim.study.planning.advice import Advice, advice
from kvsim.study.planning.candidates import Candidate
from kvsim.study.planning.goals import Goal
from kvsim.study.planning.rates.screen import Screened, screen
from kvsim.study.planning.rates.search import fewest
from kvsim.study.planning.rates.sustained import SCREENED_SHARE, Sustained, Trial, seeds_of, sustaining, trying
from kvsim.study.planning.traffic import Traffic
from kvsim.study.replication.runs.asking import Asking, Progress, answered
from kvsim.study.replication.runs.replicate import Executor

SAFETY = 1.5
"""What screens more than so many times below the rate is not simulated: screened rates are 0.97 to 1.45 times those
that simulation reaches (tests/study/planning/rates/test_screen.py). Where prefixes are found again, nothing is out."""

MOST_TIMES = 16
"""Where nobody says how many replicas may be, at most so many times those that the screened rate asks for."""

FRESH = "verification"
"""Purpose of the seeds on which the best are simulated once more: none of them was used to choose."""


@dataclass(frozen=True)
class Planned:
    """What came of one candidate. `out` says why it was not simulated; `trial` is then None, and so are the others.

    `replicas` are the fewest that meet every goal, or, where none do, those that come nearest; `trial` is what became
    of them under the traffic, `sustained` the largest rate that they bear.
    """

    candidate: Candidate
    screened: Screened | None
    out: str | None = None
    replicas: int | None = None
    trial: Trial | None = None
    sustained: Sustained | None = None
    advice: Advice | None = None

    @property
    def meets(self) -> bool:
        """Every goal is met under the traffic, and the queue does not grow."""
        return self.trial is not None and self.trial.borne

    @property
    def gpus(self) -> int | None:
        """Of all replicas together."""
        return None if self.replicas is None else self.replicas * self.candidate.gpus

    @property
    def largest_per_s(self) -> float | None:
        """The largest rate that is borne; None where none is, or none was looked for."""
        return None if self.sustained is None else self.sustained.found.borne

    def cost(self, name: str) -> float | None:
        """One of the `cost` metrics under the traffic."""
        return None if self.trial is None else self.trial.cost(name)

    def full_cost(self) -> float | None:
        """US dollars for a million output tokens at the largest rate that is borne."""
        best = None if self.sustained is None else self.sustained.best
        return None if best is None else best.cost("usd_per_million_output_tokens")

    def missed_by(self, goals: Sequence[Goal]) -> float:
        """The share by which the goal is missed that is missed by most; infinite where nothing was simulated."""
        if self.trial is None:
            return math.inf
        return max(goal.missed_by(value) for goal, value in zip(goals, self.trial.values, strict=True))


@dataclass(frozen=True)
class Plan:
    """The answer. `rows` are the candidates in their order; `verified` holds the trials of the best on fresh seeds.

    `verified` is empty where the traffic is a recording, which has no others.
    """

    name: str
    goals: Sequence[Goal]
    traffic: Traffic
    rows: Sequence[Planned]
    replications: int
    seed: int
    tolerance: float
    notes: Sequence[str] = ()
    verified: Mapping[str, Trial] = field(default_factory=dict)
    provenance: Sequence[Mapping[str, str]] = ()
    expected_errors: Sequence[Mapping[str, Any]] = ()
    not_modelled: Sequence[str] = ()

    @property
    def fewest(self) -> Planned | None:
        """The candidate that meets the goals with the fewest GPUs, of equals the cheaper; None where none does."""
        return self._best(lambda one: (one.gpus, _known(one.cost("usd_per_hour")), _spare(one)))

    @property
    def cheapest(self) -> Planned | None:
        """The one that costs least an hour, of equals the one with fewer GPUs; None where none meets the goals."""
        return self._best(lambda one: (_known(one.cost("usd_per_hour")), one.gpus, _spare(one)))

    @property
    def cheapest_by_token(self) -> Planned | None:
        """The one whose output tokens cost least under the traffic."""
        return self._best(lambda one: (_known(one.cost("usd_per_million_output_tokens")), one.gpus, _spare(one)))

    @property
    def cheapest_at_full_load(self) -> Planned | None:
        """The one whose output tokens cost least at the largest rate that it bears."""
        return self._best(lambda one: (_known(one.full_cost()), one.gpus, _spare(one)))

    @property
    def nearest(self) -> Planned | None:
        """Of those that were simulated and do not meet the goals, the one that comes nearest."""
        tried = [one for one in self.rows if one.trial is not None and not one.meets]
        return min(tried, key=lambda one: _distance(one.trial, self.goals), default=None)

    def headroom(self, one: Planned) -> float | None:
        """The largest rate that the candidate bears over that of the traffic."""
        rate, largest = self.traffic.rate_per_s, one.largest_per_s
        return None if rate is None or largest is None else largest / rate

    def _best(self, key: Callable[[Planned], tuple[Any, ...]]) -> Planned | None:
        return min((one for one in self.rows if one.meets), key=key, default=None)


def planned(
    name: str,
    candidates: Sequence[Candidate],
    goals: Sequence[Goal],
    traffic: Traffic,
    executor: Executor,
    *,
    counts: Sequence[int] | None,
    replications: int,
    seed: int | None,
    tolerance: float,
    notes: Sequence[str] = (),
    progress: Progress | None = None,
) -> Plan:
    """Work out a plan on an executor; the answer does not depend on it. `counts`: replicas that may be, ascending.

    Raises InputError where the settings of a candidate do not go together.
    """
    replications = replications if traffic.drawn else 1
    first = candidates[0].scenario
    seeds = seeds_of(first, replications, seed)
    told = _Told(progress)
    questions = [_question(one, goals, traffic, counts, seeds, seed, tolerance) for one in candidates]
    rows = answered(questions, executor, told)
    made = Plan(name, goals, traffic, rows, replications, first.seed if seed is None else seed, tolerance)
    best = {one.candidate.name: one for one in (made.fewest, made.cheapest, made.cheapest_by_token) if one is not None}
    verified = {}
    if traffic.drawn:
        fresh = seeds_of(first, replications, seed, FRESH)
        again = [_once(one.candidate, one.replicas or 1, goals, traffic, fresh) for one in best.values()]
        verified = dict(zip(best, answered(again, executor, told.go_on()), strict=True))
    else:
        notes = [*notes, "The traffic is a recording: one run of each trial, and no fresh seeds to verify the best on."]
    return replace(made, notes=notes, verified=verified, **_said([one for one in rows if one.trial is not None]))


def _question(
    candidate: Candidate,
    goals: Sequence[Goal],
    traffic: Traffic,
    counts: Sequence[int] | None,
    seeds: Sequence[int],
    seed: int | None,
    tolerance: float,
) -> Asking[Planned]:
    """All about one candidate: the fewest replicas that do, what they bear at most, what binds them."""
    alone = candidate.with_replicas(1)
    try:
        screened = screen(alone, seed)
        if screened is None:
            build(alone, seeds[0])
    except DoesNotFitError as error:
        return Planned(candidate, None, out=str(error))
    open_to, guess, out = _counts(alone, screened, traffic, counts)
    if out is not None:
        return Planned(candidate, screened, out=out)
    trials: dict[int, Trial] = {}
    search = fewest(open_to, guess)
    count = next(search)
    while True:
        trials[count] = yield from _once(candidate, count, goals, traffic, seeds)
        try:
            count = search.send(trials[count].borne)
        except StopIteration as end:
            replicas = end.value
            break
    if replicas is None:
        replicas = min(trials, key=lambda number: (*_distance(trials[number], goals), number))
    whole, trial = candidate.with_replicas(replicas), trials[replicas]
    sustained = None
    if traffic.changes:
        sustained = yield from sustaining(whole, goals, seeds, screen(whole, seed), tolerance)
    limit = (sustained.first_not if sustained is not None else None) or trial
    return Planned(candidate, screened, None, replicas, trial, sustained, advice(whole, screened, limit))


def _once(
    candidate: Candidate, replicas: int, goals: Sequence[Goal], traffic: Traffic, seeds: Sequence[int]
) -> Asking[Trial]:
    """So many replicas under the traffic as it is."""
    rate = traffic.rate_per_s or 0.0
    [trial] = yield from trying(candidate.with_replicas(replicas), [rate], goals, seeds, as_it_is=True)
    return trial


def _counts(
    alone: Any, screened: Screened | None, traffic: Traffic, counts: Sequence[int] | None
) -> tuple[Sequence[int], int, str | None]:
    """The numbers of replicas that come into question, the one to begin with, and why there is none.

    What is screened knows nothing of prefixes that are found again, nor of requests that wait for answers.
    """
    rate = traffic.rate_per_s
    if screened is None or rate is None:
        return counts or range(1, MOST_TIMES + 1), 1, None
    each_per_s = screened.rate_per_s
    guess = max(1, math.ceil(rate / (SCREENED_SHARE * each_per_s)))
    if build(alone, alone.seed).scheduler.allocator.caches:
        return counts or range(1, MOST_TIMES * guess + 1), guess, None
    least = max(1, math.ceil(rate / (SAFETY * each_per_s)))
    there = [count for count in counts if count >= least] if counts else range(least, MOST_TIMES * guess + 1)
    if there:
        return there, guess, None
    most = max(counts or [1])
    return (
        [],
        0,
        (
            f"screened at {most * each_per_s:.3g} requests/s with {most} replica{'' if most == 1 else 's'}, more than "
            f"{SAFETY:g} times below the rate of {rate:.3g}/s"
        ),
    )


def _distance(trial: Trial | None, goals: Sequence[Goal]) -> tuple[bool, float]:
    """How far a trial is from meeting the goals, comparable; a growing queue is farther than any percentage."""
    if trial is None:
        return True, math.inf
    return trial.saturated, max(goal.missed_by(value) for goal, value in zip(goals, trial.values, strict=True))


def _said(rows: Sequence[Planned]) -> dict[str, Any]:
    """Where the numbers of the candidates come from, how far step times are off, and what is not modelled."""
    made = [build(one.candidate.scenario, one.candidate.scenario.seed) for one in rows]
    return {
        "provenance": [one.provenance for one in made],
        "expected_errors": [one.expected_error for one in made],
        "not_modelled": list(dict.fromkeys(gap for one in made for gap in one.not_modelled)),
    }


class _Told:
    """Progress over several rounds of questions: what was done before counts as done."""

    def __init__(self, progress: Progress | None, before: int = 0) -> None:
        self._progress, self._before, self._done = progress, before, before

    def __call__(self, done: int, asked: int) -> None:
        self._done = self._before + done
        if self._progress is not None:
            self._progress(self._done, self._before + asked)

    def go_on(self) -> "_Told":
        return _Told(self._progress, self._done)


def _known(value: float | None) -> float:
    return math.inf if value is None else value


def _spare(one: Planned) -> float:
    """Of equals the one that bears most comes first."""
    return -(one.largest_per_s or 0.0)
