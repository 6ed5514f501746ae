"""One scenario, one seed, one Result."""

import time
from concurrent.futures import Executor

from kvsim.engine.run import simulate_under
from kvsim.errors import InputError
from kvsim.metrics.prefix.prompts import PromptLog
from kvsim.metrics.result import Result
from kvsim.metrics.tables import Pieces, Tables
from kvsim.scenario.build import build
from kvsim.scenario.resolve import Scenario
from kvsim.study.fleet import run_fleet
from kvsim.study.outcome import conditions_of, outcome_of, result_of
from kvsim.study.reporter import Progress, reporter


def run(
    scenario: Scenario,
    *,
    seed: int | None = None,
    stepwise: bool = False,
    check: bool = False,
    addresses: bool = False,
    kv_events: bool = False,
    prompts: bool = False,
    progress: Progress | None = None,
    pieces: Pieces | None = None,
    executor: Executor | None = None,
) -> Result:
    """Simulate `scenario` once; `seed` replaces the scenario's.

    `stepwise` plans every step instead of leaping (the same result, slower). `check` counts everything again after
    every step. `addresses` records where every slot goes (`Result.addresses`), step by step as with `stepwise`; a row
    for each output token, and some. `kv_events` keeps what a router would hear of the prefix cache
    (`Result.kv_events`), and `prompts` what prompts share (`Result.prompts`). The records of the run are kept, or go to
    `pieces` while it goes on: `ParquetPieces` for the files of a run folder, `Dropped` where the summary is enough;
    then a run of any length takes some 40 bytes of memory a request. The same scenario and seed give the same Result,
    but for `wall_s`.

    A fleet is recorded replica by replica: of its tables there are requests, events, preemptions and replicas, with
    `pieces` the last alone. With an `executor` the replicas of one whose router is stateless are worked on in pieces.
    """
    seed = scenario.seed if seed is None else seed
    settings = scenario.settings
    simulation = build(scenario, seed)
    caches = simulation.scheduler.allocator.caches
    if simulation.routing is not None:
        for asked, option in ((addresses, "--addresses"), (kv_events, "--kv-events"), (prompts, "--prompts")):
            if asked:
                raise InputError(f"{scenario.label}: {option} is for one replica; leave it out, or leave fleet out")
        return run_fleet(
            scenario, seed, stepwise=stepwise, check=check, progress=progress, pieces=pieces, executor=executor
        )
    if kv_events and not caches:
        raise InputError(
            f"{scenario.label}: KV events tell of a prefix cache, and this run has none; set "
            "allocator.prefix_caching: true or leave --kv-events out"
        )
    if prompts and not caches:
        raise InputError(
            f"{scenario.label}: what prompts share is known only where prefixes are cached; set "
            "allocator.prefix_caching: true or leave --prompts out"
        )
    if (addresses or prompts) and pieces is not None:
        what = "addresses" if addresses else "prompts"
        raise InputError(f"{scenario.label}: {what} are recorded in memory, and cannot go to pieces")
    if caches:
        simulation.workload.follow()
    noted = PromptLog() if prompts else None
    after = simulation.workload.after if simulation.workload.closed else None
    started = time.perf_counter()
    log = simulate_under(
        conditions_of(scenario, simulation, stepwise=stepwise, check=check, addresses=addresses, kv_events=kv_events),
        simulation.workload if noted is None else noted.through(simulation.workload),
        simulation.scheduler,
        simulation.timing,
        on_end=reporter(scenario, simulation, progress),
        after=after if noted is None or after is None else noted.behind(after),
        over=simulation.workload.over if caches else None,
        pieces=pieces,
    )
    recording, outcome = log.recording, outcome_of(log, simulation, settings)
    result = result_of(
        scenario,
        simulation,
        seed,
        outcome,
        tables=Tables(recording.requests, recording.memory, outcome.addresses, noted)
        if pieces is None
        else pieces.tables(),
        kv_events=recording.cache.events if recording.cache else None,
    )
    result.wall_s = time.perf_counter() - started
    return result
