"""A run, its pressures, and the same traffic again with each cure."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kvsim.errors import InputError
from kvsim.metrics.result import Result
from kvsim.metrics.waste import waste_share
from kvsim.scenario.messages import Origin
from kvsim.scenario.resolve import Scenario
from kvsim.step import ENDS
from kvsim.study.diagnosis.cures import UNBOUNDED, UNBOUNDED_CACHE, Cure, caches, cures, room_for_all, yardsticks
from kvsim.study.diagnosis.limits import Limits, limits_of
from kvsim.study.diagnosis.pressures import REUSE, Pressures, Shortage, pressures_of, shortage_of
from kvsim.study.executors import Workers, opened, outcomes
from kvsim.study.single import run
from kvsim.study.sweeps.runs import Run, failed, outcome

Progress = Callable[[int, int], None]
"""Told the runs that are done and the runs in all."""

FELT = 0.01
"""A cure that changes goodput and TTFT by less than this share brings nothing that one run could tell from chance."""

WHOLE_RUN = (*ENDS, "arrived", "preemptions", "lost_tokens", "hit_tokens", "steps", "simulated_s")
"""Metrics of the whole run, whatever part of it is measured: an earlier run of the same scenario has the same ones."""


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """What is compared, of one run: rates a second, times in seconds, shares; None where a number does not exist."""

    goodput_per_s: float | None
    requests_per_s: float | None
    ttft_p99_s: float | None
    preemptions: int
    waste_share: float | None
    mean_running: float | None
    peak_used_share: float | None
    hit_rate: float | None
    pool_tokens: int | None

    @classmethod
    def of(cls, metrics: Mapping[str, Any]) -> "Numbers":
        """From the metrics of a run."""
        return cls(
            goodput_per_s=metrics["goodput_per_s"],
            requests_per_s=metrics["requests_per_s"],
            ttft_p99_s=metrics["ttft_s"] and metrics["ttft_s"]["p99"],
            preemptions=metrics["preemptions"],
            waste_share=waste_share(metrics),
            mean_running=metrics["mean_running"],
            peak_used_share=metrics["peak_share"]["used"],
            hit_rate=metrics["hit_rate"],
            pool_tokens=metrics["pool_tokens"],
        )

    @property
    def rate(self) -> float | None:
        """Goodput, or requests a second where there is no goal."""
        return self.requests_per_s if self.goodput_per_s is None else self.goodput_per_s

    def gain(self, before: "Numbers") -> float | None:
        """How much better this is than `before`: the larger of the relative gains of the rate and of TTFT p99.

        None where neither can be compared.
        """
        gains = []
        if self.rate is not None and before.rate is not None:
            gains.append((self.rate - before.rate) / before.rate if before.rate else float(self.rate > 0))
        if self.ttft_p99_s is not None and before.ttft_p99_s:
            gains.append((before.ttft_p99_s - self.ttft_p99_s) / before.ttft_p99_s)
        return max(gains, default=None)


@dataclass(frozen=True)
class Tried:
    """A cure and what came of it; `error` says why it could not be had."""

    cure: Cure
    numbers: Numbers | None
    error: str | None = None


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """The run as it is, its pressures, and every cure that was tried, all on the same random streams."""

    result: Result
    pressures: Pressures
    shortage: Shortage
    limits: Limits
    before: Numbers
    tried: list[Tried]
    notes: list[str] = field(default_factory=list)

    @property
    def dominant(self) -> str | None:
        """The pressure that dominates; None where KV memory was never short.

        Where it was short of room for cached prefixes alone, that is reuse, whatever the slots taken hold.
        """
        if not self.shortage.any:
            return None
        return self.pressures.dominant if self.shortage.of_live_kv else REUSE

    @property
    def cured(self) -> list[Tried]:
        """The cures that were run."""
        return [one for one in self.tried if one.cure.pressure and one.numbers is not None]

    @property
    def refused(self) -> list[Tried]:
        """Those that could not be."""
        return [one for one in self.tried if one.numbers is None]

    @property
    def best(self) -> Tried | None:
        """The cure that brings most; None where none brings anything that is felt."""
        return self.best_of(self.cured)

    @property
    def best_of_dominant(self) -> Tried | None:
        """That of the pressure that dominates."""
        return self.best_of([one for one in self.cured if one.cure.pressure == self.dominant])

    def best_of(self, cures: Sequence[Tried]) -> Tried | None:
        """The one with the highest rate, and among those within `FELT` of it the shortest TTFT p99."""
        felt = [one for one in cures if one.numbers and (one.numbers.gain(self.before) or 0.0) >= FELT]
        if not felt:
            return None
        rates = [one.numbers.rate or 0.0 for one in felt if one.numbers]
        close = [one for one in felt if one.numbers and (one.numbers.rate or 0.0) >= (1 - FELT) * max(rates)]
        return min(close, key=lambda one: (one.numbers and one.numbers.ttft_p99_s) or 0.0)

    @property
    def yardstick(self) -> Numbers | None:
        """The same run with room for everybody."""
        return next((one.numbers for one in self.tried if one.cure.name == UNBOUNDED), None)


def diagnose(
    scenario: Scenario,
    *,
    seed: int | None = None,
    jobs: int | None = 1,
    stored: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Diagnosis:
    """Run `scenario`, say what presses on its KV memory, and run it again with each cure, on the same random streams.

    Rates and shares are over the whole run, to its last finish, unless the scenario says otherwise. `jobs` processes
    run the cures (None: one a core). `stored` are the metrics of an earlier run, which a note compares
    with those of now. Raises InputError for a scenario that keeps no KV, and what `study.run` raises.
    """
    seed, window = scenario.seed if seed is None else seed, _window(scenario)
    result = run(scenario.changed(window, Origin("diagnose")), seed=seed)
    pool_tokens = result.metrics["pool_tokens"]
    if not pool_tokens:
        raise InputError(f"{scenario.label}: keeps no KV, so that none of it can press; use another allocator")
    longest = int(result.scenario_resolved["engine.max_model_len"]["value"])
    room = max(pool_tokens, room_for_all(scenario, result.tables["requests"], longest))
    asked = [
        replace(cure, changes={**cure.changes, **window})
        for cure in (*cures(scenario, pool_tokens=pool_tokens), *yardsticks(scenario, pool_tokens=room))
    ]
    with opened(jobs=jobs) as workers:
        tried, metrics = _tried(scenario, seed, asked, workers, progress)
    unbounded = metrics.get(UNBOUNDED if caches(scenario) else UNBOUNDED_CACHE)
    return Diagnosis(
        result=result,
        pressures=pressures_of(scenario, result, unbounded),
        shortage=shortage_of(result),
        limits=limits_of(result),
        before=Numbers.of(result.metrics),
        tried=tried,
        notes=_notes(scenario, result, stored, unbounded, metrics),
    )


def _window(scenario: Scenario) -> dict[str, Any]:
    """Measure all runs from the first arrival to the last finish, where the scenario leaves that open.

    Up to the last arrival, a cure that takes in more requests at once may have finished fewer of them by then.
    """
    return {"window.until": "last_finish"} if scenario.settings.window.until == "auto" else {}


def _tried(
    scenario: Scenario, seed: int, asked: Iterable[Cure], workers: Workers, progress: Progress | None
) -> tuple[list[Tried], dict[str, Mapping[str, Any]]]:
    """Run every cure, in the order asked for; and the metrics of each that has some."""
    wrong: dict[str, str] = {}
    runs: list[Run] = []
    asked = list(asked)
    for number, cure in enumerate(asked):
        try:
            changed = scenario.changed(cure.changes, Origin("cure")).in_folder(os.getcwd())
        except InputError as error:
            wrong[cure.name] = str(error)
        else:
            runs.append(Run(changed, seed, cure.name, number, 0))
    came: dict[str, Mapping[str, Any]] = {}
    for piece in outcomes(workers, outcome, runs, lost=failed):
        came |= {one.key: had for one, had in piece}
        if progress is not None:
            progress(len(came), len(runs))
    found = {name: had["metrics"] for name, had in came.items() if had["error"] is None}
    errors = wrong | {name: had["error"] for name, had in came.items() if had["error"] is not None}
    tried = [
        Tried(cure, Numbers.of(found[cure.name]) if cure.name in found else None, errors.get(cure.name))
        for cure in asked
    ]
    return tried, found


def _notes(
    scenario: Scenario,
    result: Result,
    stored: Mapping[str, Any] | None,
    unbounded: Mapping[str, Any] | None,
    cured: Mapping[str, Mapping[str, Any]],
) -> list[str]:
    said = []
    if stored is not None and any(stored.get(name) != result.metrics[name] for name in WHOLE_RUN):
        said.append("The folder holds other numbers than a run gives now; those of now are told.")
    if unbounded is not None and not unbounded["hit_rate"]:
        said.append("Prompts share nothing, or the traffic does not say what they share.")
        again = max((one["rehit_tokens"] for one in cured.values()), default=0)
        if again:
            said.append(
                "Where prefixes are cached, preempted requests find what they had computed themselves: up to "
                f"{again:,} tokens. That is what caching brings here."
            )
    if scenario.settings.window.until == "saturated" and not all(one["measured_s"] for one in cured.values()):
        said.append("A run in which nobody waits has no numbers (-): window.until is saturated here.")
    return said
