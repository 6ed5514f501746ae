"""Where is the cliff: one set-up under more and more load, and where latency, preemption and queue leave it.

The knee is the largest load at which the 99th percentile of TTFT is at most twice what it is at the lowest load. For
the M/M/1 queue that is where throughput over delay, its power, is largest: L. Kleinrock, Power and deterministic rules
of thumb for probabilistic problems in computer communications, ICC 1979. Beyond it load buys more delay than work.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kvsim.errors import InputError
from kvsim.scenario.build import build
from kvsim.scenario.resolve import Scenario
from kvsim.study.planning.rates.screen import Screened, screen
from kvsim.study.planning.rates.sustained import SCREENED_SHARE, Trial, seeds_of, trying
from kvsim.study.planning.traffic import Traffic
from kvsim.study.replication.runs.asking import Asking, Progress, answered
from kvsim.study.replication.runs.replicate import Executor

LEAVES = 2.0
"""Times its level at the lowest load at which latency is said to have left it."""

LOADS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2)
"""Shares of what the set-up is screened to bear that are tried first; the lowest is the level that latency leaves."""

WITHIN = 3
"""Rates that are tried between the last before a mark and the first beyond it."""

FARTHER = 1.3
"""Factor between rates that are tried while the queue does not blow up."""

MOST_FARTHER = 8


@dataclass(frozen=True)
class Cliff:
    """Trials in the order of their rates, and the marks that they show; None where the trials show none.

    `low_load_s` is the TTFT p99 at the lowest rate, `knee_per_s` the largest rate up to which it stays within `LEAVES`
    times that; `preemption_onset_per_s` the smallest rate from which on requests are preempted. From
    `saturated_from_per_s` on the queue is seen to grow without end; what is served meanwhile, of the arrivals all but
    those by which it grows, is the most that can be served: beyond that, `blow_up_per_s`, it grows.
    """

    name: str
    scenario: Scenario
    traffic: Traffic
    screened: Screened | None
    trials: Sequence[Trial]
    blow_up_per_s: float | None
    replications: int
    seed: int
    notes: Sequence[str] = ()
    provenance: Mapping[str, str] = field(default_factory=dict)
    expected_error: Mapping[str, Any] = field(default_factory=dict)
    not_modelled: Sequence[str] = ()

    @property
    def low_load_s(self) -> float | None:
        """See above."""
        return _ttft_s(self.trials[0])

    @property
    def knee_per_s(self) -> float | None:
        """See above."""
        beyond = _first(self.trials, self._left)
        return None if not beyond else self.trials[beyond - 1].rate_per_s

    @property
    def preemption_onset_per_s(self) -> float | None:
        """See above."""
        return _rate(self.trials, _first(self.trials, _preempts))

    @property
    def saturated_from_per_s(self) -> float | None:
        """See above."""
        return _rate(self.trials, _first(self.trials, _saturated))

    def _left(self, trial: Trial) -> bool:
        return _left(self.trials[0], trial)


def find_cliff(
    name: str,
    scenario: Scenario,
    traffic: Traffic,
    executor: Executor,
    *,
    replications: int,
    seed: int | None,
    progress: Progress | None = None,
) -> Cliff:
    """Sweep the load of one set-up, and look closer around each mark; the answer does not depend on the executor.

    Raises InputError where the traffic has no rate that can be changed, or runs are too short to show a steady state,
    DoesNotFitError where there is no room for KV.
    """
    if not traffic.changes:
        raise InputError(
            f"{name}: --where-is-the-cliff: sweeps workload.rate, and this traffic has none that could be set; give it "
            "one, for example --set workload.rate=4/s"
        )
    replications = replications if traffic.drawn else 1
    screened = screen(scenario, seed)
    full = screened.rate_per_s if screened else (traffic.rate_per_s or 1.0) / SCREENED_SHARE
    seeds = seeds_of(scenario, replications, seed)
    [(trials, served_per_s)] = answered([_sweeping(scenario, seeds, full)], executor, progress)
    made = build(scenario, seeds[0])
    return Cliff(
        name=name,
        scenario=scenario,
        traffic=traffic,
        screened=screened,
        trials=trials,
        blow_up_per_s=served_per_s,
        replications=replications,
        seed=seeds[0],
        notes=[] if traffic.drawn else ["The traffic is a recording: one run at each rate."],
        provenance=made.provenance,
        expected_error=made.expected_error,
        not_modelled=made.not_modelled,
    )


def _sweeping(scenario: Scenario, seeds: Sequence[int], full_per_s: float) -> Asking[tuple[list[Trial], float | None]]:
    """The trials by rate, and what is served while the queue grows: a rate that is tried too."""
    trials = yield from trying(scenario, [full_per_s * load for load in LOADS], (), seeds)
    if trials[0].growth is None:
        raise InputError(
            f"{scenario.label}: --where-is-the-cliff: not even at the lowest load, {trials[0].rate_per_s:.3g}/s, do "
            "the runs show a steady state; simulate more requests (workload.requests), or measure more of them "
            "(horizon, window.warmup)"
        )
    for _ in range(MOST_FARTHER):
        if _first(trials, _saturated) is not None:
            break
        trials += yield from trying(scenario, [trials[-1].rate_per_s * FARTHER], (), seeds)
    closer: set[float] = set()
    for marks in (lambda one: _left(trials[0], one), _preempts, _saturated):
        beyond = _first(trials, marks)
        if beyond:
            low, high = trials[beyond - 1].rate_per_s, trials[beyond].rate_per_s
            closer |= {low + (high - low) * part / (WITHIN + 1) for part in range(1, WITHIN + 1)}
    more = yield from trying(scenario, sorted(closer), (), seeds)
    trials = sorted([*trials, *more], key=lambda trial: trial.rate_per_s)
    served_per_s = _served_per_s(trials)
    if served_per_s is not None and all(trial.rate_per_s != served_per_s for trial in trials):
        trials += yield from trying(scenario, [served_per_s], (), seeds)
    return sorted(trials, key=lambda trial: trial.rate_per_s), served_per_s


def _served_per_s(trials: Sequence[Trial]) -> float | None:
    """Of the arrivals all but those by which the queue grows, over the rates from which on it is seen to."""
    place = _first(trials, _saturated)
    if place is None:
        return None
    served = [trial.rate_per_s * (1 - trial.growth) for trial in trials[place:] if trial.growth is not None]
    return sum(served) / len(served) if served else trials[place].rate_per_s


def _first(trials: Sequence[Trial], marks: Callable[[Trial], bool]) -> int | None:
    """The place of the first trial from which on all have the mark: one that has it by chance below does not count."""
    last_not = max((place for place, trial in enumerate(trials) if not marks(trial)), default=-1)
    return None if last_not == len(trials) - 1 else last_not + 1


def _rate(trials: Sequence[Trial], place: int | None) -> float | None:
    return None if place is None else trials[place].rate_per_s


def _ttft_s(trial: Trial) -> float | None:
    return trial.mean("ttft_s", "p99")


def _left(lowest: Trial, trial: Trial) -> bool:
    low_s, now_s = _ttft_s(lowest), _ttft_s(trial)
    return low_s is not None and (now_s is None or now_s > LEAVES * low_s)


def _preempts(trial: Trial) -> bool:
    return any(run["preemptions"] for run in trial.runs)


def _saturated(trial: Trial) -> bool:
    return trial.saturated
