"""One run of a fleet: in one environment, or, where replicas do not know of each other, in pieces."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from kvsim.engine.fleet import FleetLog, simulate_fleet
from kvsim.metrics.columns import TYPES
from kvsim.metrics.result import Result
from kvsim.metrics.summary import Run, metrics, pools
from kvsim.metrics.summary.fleet import joined
from kvsim.metrics.tables import Dropped, FleetTables, Pieces
from kvsim.request import PS_PER_S
from kvsim.scenario.build import Simulation, build
from kvsim.scenario.resolve import Scenario
from kvsim.step import ENDS
from kvsim.study.outcome import conditions_of, outcome_of, result_of
from kvsim.study.reporter import Progress, reporter

PARTS = 16
"""Into so many pieces the replicas of a fleet are cut for an executor: each makes all the requests, and serves its own.
"""


@dataclass(frozen=True, slots=True)
class Part:
    """Some replicas of a fleet, to be worked on anywhere."""

    scenario: Scenario
    seed: int
    numbers: range
    stepwise: bool
    check: bool
    keep: bool
    """Keep the records of the requests, or only what the summary needs."""


def run_fleet(
    scenario: Scenario,
    seed: int,
    *,
    stepwise: bool = False,
    check: bool = False,
    progress: Progress | None = None,
    pieces: Pieces | None = None,
    executor: Executor | None = None,
) -> Result:
    """See `single.run`; `scenario` has a `fleet`."""
    started = time.perf_counter()
    simulation = build(scenario, seed)
    routing, replicas, keep = simulation.routing, simulation.replicas, pieces is None
    assert routing is not None
    paid_ps = None
    if executor is not None and routing.apart and not simulation.workload.closed:
        size = -(-replicas // PARTS)
        parts = [
            Part(scenario, seed, range(first, min(first + size, replicas)), stepwise, check, keep)
            for first in range(0, replicas, size)
        ]
        runs: list[Run] = []
        for done, piece in enumerate(executor.map(work, parts)):
            runs += piece
            if progress is not None:
                progress((done + 1) / len(parts), scenario.label)
    else:
        into = None if pieces is None else pieces.of_replica
        log = _simulate(simulation, scenario, range(replicas), None, stepwise, check, into, progress)
        runs = [outcome_of(one, simulation, scenario.settings) for one in log.replicas]
        paid_ps = log.paid_ps
    end_ps = max(run.end_ps for run in runs)
    whole = joined(runs, end_ps=end_ps)
    alone = [joined([run], end_ps=end_ps) for run in runs]
    name = scenario.settings.fleet.router.name if scenario.settings.fleet else ""
    rows = _rows([metrics(one) for one in alone], paid_ps or [end_ps] * replicas)
    result = result_of(
        scenario,
        simulation,
        seed,
        whole,
        tables=FleetTables(rows, runs if keep else ()),
        paid_replicas=sum(paid_ps) / end_ps if paid_ps is not None and end_ps else None,
    )
    result.provenance = result.provenance | {"fleet": f"{replicas} replicas, router {name}"}
    result.not_modelled = [*result.not_modelled, "The time that a router takes, and how old what it knows is."]
    result.pools = [pool | {"replica": number} for number, one in enumerate(alone) for pool in pools(one)]
    result.wall_s = time.perf_counter() - started
    return result


def work(part: Part) -> list[Run]:
    """What becomes of some replicas, as an executor works it out: the same as within the whole fleet."""
    simulation = build(part.scenario, part.seed)
    into = None if part.keep else Dropped().of_replica
    log = _simulate(simulation, part.scenario, part.numbers, part.numbers, part.stepwise, part.check, into, None)
    return [outcome_of(one, simulation, part.scenario.settings) for one in log.replicas]


def _simulate(
    simulation: Simulation,
    scenario: Scenario,
    numbers: range,
    only: Sequence[int] | None,
    stepwise: bool,
    check: bool,
    into: Callable[[int], Pieces] | None,
    progress: Progress | None,
) -> FleetLog:
    routing, workload = simulation.routing, simulation.workload
    assert routing is not None
    caches = simulation.scheduler.allocator.caches
    if caches:
        workload.follow()
    return simulate_fleet(
        workload,
        simulation.replicas,
        simulation.another,
        simulation.timing,
        routing,
        conditions_of(scenario, simulation, stepwise=stepwise, check=check),
        only=only,
        on_end=reporter(scenario, simulation, progress),
        after=workload.after if workload.closed else None,
        over=workload.over if caches else None,
        pieces=into or (lambda _: None),
    )


def _rows(each: Sequence[dict[str, Any]], paid_ps: Sequence[int]) -> dict[str, list[Any]]:
    """The table of replicas, from the metrics of each and for how long it had to be there."""
    found: dict[str, list[Any]] = {name: [] for name in TYPES["replicas"]}
    for number, (one, time_ps) in enumerate(zip(each, paid_ps, strict=True)):
        ttft, tpot = one["ttft_s"] or {}, one["tpot_s"] or {}
        row = {
            "replica": number,
            "paid_s": time_ps / PS_PER_S,
            **{end: one[end] for end in ENDS},
            "preemptions": one["preemptions"],
            "hit_tokens": one["hit_tokens"],
            "mean_running": one["mean_running"],
            "mean_waiting": one["mean_waiting"],
            "used_share": one["mean_share"]["used"],
            "cached_share": one["mean_share"]["cached"],
            "ttft_mean_s": ttft.get("mean"),
            "ttft_p99_s": ttft.get("p99"),
            "tpot_mean_s": tpot.get("mean"),
            "output_tokens_per_s": one["output_tokens_per_s"],
        }
        for name, column in found.items():
            column.append(row[name])
    return found
