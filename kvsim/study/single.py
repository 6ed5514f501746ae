"""One scenario, one seed, one Result."""

import time
from collections.abc import Callable

from kvsim.engine.run import simulate
from kvsim.errors import InputError
from kvsim.metrics.requests import Ended
from kvsim.metrics.result import Result
from kvsim.metrics.summary import Moved, Run, metrics, pools
from kvsim.metrics.tables import Pieces, Tables
from kvsim.request import PS_PER_S
from kvsim.scenario.build import Simulation, build
from kvsim.scenario.resolve import Scenario
from kvsim.version import __version__
from kvsim.workload.stream import GeneratedTraffic
from kvsim.workload.trace import TraceTraffic

Progress = Callable[[float, str], None]
"""Called with the fraction done, 0 to 1, and what is being done."""

FALLS_BEHIND = 0.1
"""An engine keeps up if, once nobody arrives any more, it is done within this share of the time that arrivals took."""

_FEW = 0.01
"""The share of lengths outside their bounds from which on a run says so."""

_UPDATES = 200
"""How often a run reports its progress in all."""


def run(
    scenario: Scenario,
    *,
    seed: int | None = None,
    stepwise: bool = False,
    check: bool = False,
    addresses: bool = False,
    kv_events: bool = False,
    progress: Progress | None = None,
    pieces: Pieces | None = None,
) -> Result:
    """Simulate `scenario` once; `seed` replaces the scenario's.

    `stepwise` plans every step instead of leaping (the same result, slower). `check` counts everything again after
    every step. `addresses` records where every slot goes (`Result.addresses`), step by step as with `stepwise`; a row
    for each output token, and some. `kv_events` keeps what a router would hear of the prefix cache
    (`Result.kv_events`). The records of the run are kept, or go to `pieces` while it goes on: `ParquetPieces` for the
    files of a run folder, `Dropped` where the summary is enough; then a run of any length takes some 40 bytes of
    memory a request. The same scenario and seed give the same Result, but for `wall_s`.
    """
    seed = scenario.seed if seed is None else seed
    settings = scenario.settings
    simulation = build(scenario, seed)
    caches = simulation.scheduler.allocator.caches
    if kv_events and not caches:
        raise InputError(
            f"{scenario.label}: KV events tell of a prefix cache, and this run has none; set "
            "allocator.prefix_caching: true or leave --kv-events out"
        )
    if addresses and caches:
        raise InputError(
            f"{scenario.label}: addresses are recorded only where slots keep no contents; leave --addresses out, or "
            "use allocator: paged without prefix_caching"
        )
    if addresses and pieces is not None:
        raise InputError(f"{scenario.label}: addresses are recorded in memory, and cannot go to pieces")
    if caches:
        simulation.workload.follow()
    started = time.perf_counter()
    log = simulate(
        simulation.workload,
        simulation.scheduler,
        simulation.timing,
        max_model_len=simulation.max_model_len,
        window=settings.window.until,
        warmup_ps=settings.window.warmup,
        horizon_ps=settings.horizon,
        max_queued=settings.engine.max_queued_requests,
        stepwise=stepwise,
        check=check,
        addresses=addresses,
        layers=simulation.workload.layers() if caches else None,
        kv_events=kv_events,
        on_end=_reporter(scenario, simulation, progress),
        after=simulation.workload.after if simulation.workload.closed else None,
        over=simulation.workload.over if caches else None,
        pieces=pieces,
    )
    recording, resolved = log.recording, scenario.resolved()
    if seed != scenario.seed:
        resolved["seed"] = {"value": seed, "source": "--seed"}
    outcome = Run(
        requests=recording.requests,
        memory=recording.memory,
        gaps=recording.gaps.histogram,
        end_ps=log.end_ps,
        last_arrival_ps=log.last_arrival_ps,
        moved=Moved(
            recording.copied_slots * simulation.bytes_per_slot,
            recording.gathered_slots * simulation.bytes_per_slot,
            recording.swapped_slots * simulation.bytes_per_slot,
        ),
        upkeep=recording.upkeep,
        padding_tokens=recording.padding_tokens,
        padding_context_tokens=recording.padding_context_tokens,
        device_bytes=simulation.device.ledger(*recording.largest_step) if simulation.device else None,
        host_slots=simulation.scheduler.host.slots if simulation.scheduler.host else 0,
        block_size=simulation.block_size,
        window=settings.window.until,
        slo=simulation.slo,
        warmup_ps=settings.window.warmup,
        caches=caches,
        addresses=recording.addresses.log if recording.addresses else None,
        residency=recording.cache.residency if recording.cache else None,
    )
    return Result(
        name=scenario.label,
        seed=seed,
        version=__version__,
        scenario_given=_as_given(scenario),
        scenario_resolved=resolved,
        provenance=simulation.provenance,
        not_modelled=simulation.not_modelled,
        notes=simulation.notes
        + _of_trace(scenario, simulation)
        + _outside(simulation)
        + _falls_behind(simulation, outcome),
        published=settings.published or {},
        metrics=metrics(outcome),
        pools=pools(outcome),
        tables=Tables(recording.requests, recording.memory, outcome.addresses) if pieces is None else pieces.tables(),
        refusals=recording.requests.refusals,
        kv_events=recording.cache.events if recording.cache else None,
        wall_s=time.perf_counter() - started,
    )


def _as_given(scenario: Scenario) -> str:
    """The scenario file as it was; the files that it extends stand behind it as comments."""
    *below, own = scenario.given.items() or [("", "")]
    comments = [f"# extends {name}\n" + "".join(f"# {line}\n" for line in text.splitlines()) for name, text in below]
    return "\n".join([own[1], *comments])


def _of_trace(scenario: Scenario, simulation: Simulation) -> list[str]:
    """Notes that say how many rows of a trace were left out, and why, and what the others say that is not used."""
    if not isinstance(simulation.traffic, TraceTraffic):
        return []
    said = []
    # Rows may be no requests without being bad, such as failed calls; those of a run that broke off are not told.
    asked = scenario.settings.workload.on_bad_row == "drop"
    report = simulation.traffic.survey() if asked else simulation.traffic.report
    if report is not None and report.dropped:
        reasons = ", ".join(f"{reason}: {count}" for reason, count in sorted(report.dropped.items()))
        said.append(f"{sum(report.dropped.values())} of {report.rows_read} rows of the trace were dropped ({reasons}).")
    caches, told = simulation.scheduler.allocator.caches, simulation.traffic.prefix_identity == "real"
    if told and not caches:
        said.append(
            "The trace says which prompts begin alike, and this run does not use it: every prompt is computed whole. "
            "`kvsim hit-curve` counts what is shared."
        )
    elif told:
        said.append(
            f"The trace tells its prompts apart in blocks of {simulation.traffic.block_tokens} tokens: what they share "
            "beyond the last equal block, or with an earlier output, counts as unlike."
        )
    elif caches:
        said.append("The trace does not say which prompts begin alike: a request finds only blocks of its own again.")
    return said


def _outside(simulation: Simulation) -> list[str]:
    """Notes that say how many of the lengths drawn did not lie within their bounds, where it was more than a few."""
    traffic = simulation.traffic
    if not isinstance(traffic, GeneratedTraffic):
        return []
    done = {"clip": "were put on them", "redraw": "were drawn again"}
    return [
        f"{tally.outside / tally.drawn:.1%} of the {kind} lengths drawn lay outside their bounds and "
        f"{done[traffic.policy(kind)]}."
        for kind, tally in traffic.outside.items()
        if tally.outside > _FEW * tally.drawn
    ]


def _falls_behind(simulation: Simulation, outcome: Run) -> list[str]:
    """A note that says plainly when an engine that keeps nothing cannot keep up with its traffic."""
    arrivals_ps, late_ps = outcome.last_arrival_ps, outcome.end_ps - outcome.last_arrival_ps
    if simulation.scheduler.allocator.keeps or late_ps <= FALLS_BEHIND * arrivals_ps:
        return []
    marks = outcome.requests.marks()
    asked, emitted = len(marks), sum(marks.finished_in([(0, arrivals_ps)]))
    return [
        f"Without a cache the engine does not keep up with this traffic: when the last request arrived, after "
        f"{arrivals_ps / PS_PER_S:,.0f} s, {emitted} of {asked} had finished; the rest took "
        f"{late_ps / PS_PER_S:,.0f} s more."
    ]


def _reporter(scenario: Scenario, simulation: Simulation, progress: Progress | None) -> Callable[[Ended], None] | None:
    """Turns the ends of requests into progress; None where nobody looks or nobody knows how many will come."""
    if progress is None:
        return None
    traffic = simulation.traffic
    total = traffic.survey().rows_kept if isinstance(traffic, TraceTraffic) else scenario.settings.workload.requests
    if not total:
        return None
    ended = 0
    every = max(1, total // _UPDATES)

    def on_end(_: Ended) -> None:
        nonlocal ended
        ended += 1
        if ended % every == 0:
            progress(min(1.0, ended / total), scenario.label)

    return on_end
