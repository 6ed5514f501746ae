"""What a user calls: a plan of a scenario, from texts and choices."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from kvsim.errors import InputError
from kvsim.scenario.resolve import Scenario
from kvsim.scenario.variants import every_variant
from kvsim.study.executors import opened
from kvsim.study.planning.candidates import TP, Choices, candidates_of, notes_on
from kvsim.study.planning.cliff import Cliff, find_cliff
from kvsim.study.planning.goals import Goal, check_goodput, goals_of, goals_of_slo
from kvsim.study.planning.plan import Plan, planned
from kvsim.study.planning.rates.sustained import PLAN, REPLICATIONS
from kvsim.study.planning.traffic import traffic_of
from kvsim.study.replication.runs.asking import Progress

TOLERANCE = 0.05
"""How exactly a plan knows the largest rate of each candidate, as a share of it."""


def plan(
    scenario: Scenario | str | os.PathLike[str] | Mapping[str, Any] | Sequence[Scenario],
    slo: str | None = None,
    *,
    choices: Choices | None = None,
    replicas: Sequence[int] | None = None,
    replications: int = REPLICATIONS,
    seed: int | None = None,
    tolerance: float = TOLERANCE,
    jobs: int | None = None,
    cluster: str | None = None,
    progress: Progress | None = None,
) -> Plan:
    """Which way to serve the traffic of a scenario meets the goals with the fewest GPUs and at the lowest cost.

    `slo` are the goals (`"ttft_p99<1s, tpot_p95<50ms"`; None: those of the scenario's `slo`). Candidates are all
    combinations of `choices` (dotted key to values, such as `{"gpu": ["H100-SXM", "A100-SXM-80GB"], "tensor_parallel":
    [1, 2]}`; None: the scenario's GPU at TP 1, 2, 4 and 8), each with the fewest of `replicas` that meet the goals
    (None: as many as it takes). Every trial is simulated `replications` times, all candidates on the same random
    streams; the largest rate is known to `tolerance`. `jobs` and `cluster` as in `sweep`; the answer is the same.

    Raises InputError for goals, keys and values that are wrong, before anything runs.
    """
    scenarios = every_variant(scenario)
    goals = goals_for(scenarios, slo)
    candidates = candidates_of(scenarios, choices or {})
    with opened(jobs=jobs, cluster=cluster) as workers:
        return planned(
            scenarios[0].name,
            candidates,
            goals,
            traffic_of([one.scenario for one in candidates], seed),
            workers.executor,
            counts=counts_of(replicas),
            replications=replications,
            seed=seed,
            tolerance=tolerance,
            notes=notes_on(scenarios, candidates),
            progress=progress,
        )


def where_is_the_cliff(
    scenario: Scenario | str | os.PathLike[str] | Mapping[str, Any] | Sequence[Scenario],
    *,
    choices: Choices | None = None,
    replicas: Sequence[int] | None = None,
    replications: int = REPLICATIONS,
    seed: int | None = None,
    jobs: int | None = None,
    cluster: str | None = None,
    progress: Progress | None = None,
) -> Cliff:
    """Under which load latency, preemption and queue of one set-up leave their level; arguments as in `plan`.

    Raises InputError where there is more than one candidate or number of replicas, DoesNotFitError where there is no
    room for KV.
    """
    scenarios = every_variant(scenario)
    counts = counts_of(replicas)
    candidates = candidates_of(scenarios, choices or {TP: [scenarios[0].settings.tensor_parallel]})
    if len(candidates) > 1 or len(counts or [1]) > 1:
        many = ", ".join(one.name for one in candidates) if len(candidates) > 1 else f"{len(counts or ())} numbers"
        raise InputError(f"--where-is-the-cliff: is for one candidate, and there are {many}; choose one")
    [one] = candidates
    whole = one.scenario if counts is None else one.with_replicas(counts[0])
    if not choices:
        whole = scenarios[0] if counts is None else scenarios[0].changed({"fleet.replicas": counts[0]}, PLAN)
    with opened(jobs=jobs, cluster=cluster) as workers:
        return find_cliff(
            whole.label,
            whole,
            traffic_of([whole], seed),
            workers.executor,
            replications=replications,
            seed=seed,
            progress=progress,
        )


def goals_for(scenarios: Sequence[Scenario], slo: str | None) -> list[Goal]:
    """The goals of a text, or those of the scenario's `slo`; InputError where there are none, or one means nothing."""
    settings = scenarios[0].settings.slo
    goals = goals_of_slo(settings) if slo is None else goals_of(slo)
    check_goodput(goals, settings)
    return goals


def counts_of(replicas: Sequence[int] | None) -> list[int] | None:
    """Numbers of replicas in ascending order, each once; InputError where there is none, or one below 1."""
    if replicas is None:
        return None
    if not replicas or min(replicas) < 1:
        raise InputError(f"--replicas: {', '.join(map(str, replicas)) or 'none'}: give whole numbers of at least 1")
    return sorted(set(replicas))
