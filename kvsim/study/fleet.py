"""One run of a fleet: in one environment, or, where replicas do not know of each other, in pieces."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from kvsim.engine.fleet import FleetLog, simulate_fleet
from kvsim.engine.run import Conditions
from kvsim.metrics.columns import TYPES
from kvsim.metrics.fleet import joined
from kvsim.metrics.result import Result
from kvsim.metrics.summary import Run, metrics, pools
from kvsim.metrics.tables import Dropped, FleetTables, Pieces
from kvsim.request import PS_PER_S
from kvsim.scenario.build import Simulation, build
from kvsim.scenario.resolve import Scenario
from kvsim.step import ENDS
from kvsim.study.notes import notes_of
from kvsim.study.outcome import as_given, outcome_of, resolved
from kvsim.study.reporter import Progress, reporter
from kvsim.version import __version__

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
    each = [metrics(joined([run], end_ps=end_ps)) for run in runs]
    name = scenario.settings.fleet.router.name if scenario.settings.fleet else ""
    return Result(
        name=scenario.label,
        seed=seed,
        version=__version__,
        scenario_given=as_given(scenario),
        scenario_resolved=resolved(scenario, seed),
        provenance=simulation.provenance | {"fleet": f"{replicas} replicas, router {name}"},
        expected_error=simulation.expected_error,
        not_modelled=[*simulation.not_modelled, "The time that a router takes, and how old what it knows is."],
        notes=notes_of(scenario, simulation, whole),
        published=scenario.settings.published or {},
        metrics=metrics(whole),
        pools=[
            pool | {"replica": number}
            for number, run in enumerate(runs)
            for pool in pools(joined([run], end_ps=end_ps))
        ],
        tables=FleetTables(_rows(each, paid_ps or [end_ps] * replicas), runs if keep else ()),
        refusals=whole.requests.refusals,
        wall_s=time.perf_counter() - started,
    )


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
    settings, routing = scenario.settings, simulation.routing
    assert routing is not None
    return simulate_fleet(
        simulation.workload,
        simulation.replicas,
        simulation.another,
        simulation.timing,
        routing,
        Conditions(
            max_model_len=simulation.max_model_len,
            window=settings.window.until,
            warmup_ps=settings.window.warmup,
            horizon_ps=settings.horizon,
            max_queued=settings.engine.max_queued_requests,
            stepwise=stepwise,
            check=check,
            layers=simulation.workload.layers() if simulation.scheduler.allocator.caches else None,
            warm=tuple(simulation.workload.warm(simulation.scheduler.allocator.pool_slots)),
            flushes=simulation.flushes,
            slo_classes=tuple(simulation.slo.classes),
        ),
        only=only,
        on_end=reporter(scenario, simulation, progress),
        after=simulation.workload.after if simulation.workload.closed else None,
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
