"""From what a replica leaves behind to what a Result is made of."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kvsim.engine.run import Conditions, RunLog
from kvsim.metrics.cost import cost
from kvsim.metrics.result import Result
from kvsim.metrics.summary import Moved, Run, metrics, pools
from kvsim.scenario.build import Simulation
from kvsim.scenario.resolve import Scenario
from kvsim.scenario.schema.settings import Settings
from kvsim.study.notes import notes_of
from kvsim.version import __version__


def outcome_of(log: RunLog, simulation: Simulation, settings: Settings) -> Run:
    """The records of one replica, with what the scenario says of them."""
    recording = log.recording
    return Run(
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
        caches=simulation.scheduler.allocator.caches,
        addresses=recording.addresses.log if recording.addresses else None,
        residency=recording.cache.residency.told if recording.cache else None,
        left_range=[] if recording.fitted is None else [str(outside) for outside in recording.fitted.outside()],
        flushes=tuple(recording.flushes),
    )


def conditions_of(
    scenario: Scenario,
    simulation: Simulation,
    *,
    stepwise: bool,
    check: bool,
    addresses: bool = False,
    kv_events: bool = False,
) -> Conditions:
    """What holds for the run, or for each replica of its fleet."""
    settings, allocator = scenario.settings, simulation.scheduler.allocator
    return Conditions(
        max_model_len=simulation.max_model_len,
        window=settings.window.until,
        warmup_ps=settings.window.warmup,
        horizon_ps=settings.horizon,
        max_queued=settings.engine.max_queued_requests,
        stepwise=stepwise,
        check=check,
        addresses=addresses,
        layers=simulation.workload.layers() if allocator.caches else None,
        kv_events=kv_events,
        warm=tuple(simulation.workload.warm(allocator.pool_slots)),
        flushes=simulation.flushes,
        slo_classes=tuple(simulation.slo.classes),
    )


def result_of(
    scenario: Scenario,
    simulation: Simulation,
    seed: int,
    outcome: Run,
    *,
    tables: Mapping[str, Mapping[str, Sequence[Any]]],
    kv_events: Iterable[Mapping[str, Any]] | None = None,
    paid_replicas: float | None = None,
) -> Result:
    """The Result of what a run, or the replicas of a fleet together, left behind.

    `paid_replicas` is how many there were on average, where somebody scales the fleet; None: all of them throughout.
    """
    settings, found = scenario.settings, metrics(outcome)
    gpus = settings.tensor_parallel * settings.pipeline_parallel
    rates = {name: found[name] for name in ("output_tokens_per_s", "requests_per_s")}
    paid = gpus * (simulation.replicas if paid_replicas is None else paid_replicas)
    return Result(
        name=scenario.label,
        seed=seed,
        version=__version__,
        scenario_given=as_given(scenario),
        scenario_resolved=resolved(scenario, seed),
        provenance=simulation.provenance,
        expected_error=simulation.expected_error,
        not_modelled=simulation.not_modelled,
        notes=notes_of(scenario, simulation, outcome),
        published=settings.published or {},
        metrics={**found, "cost": cost(simulation.price, paid, **rates)},
        pools=pools(outcome),
        tables=tables,
        refusals=outcome.requests.refusals,
        kv_events=kv_events,
        gaps=outcome.gaps,
    )


def resolved(scenario: Scenario, seed: int) -> dict[str, Any]:
    """Every setting with its value and where it came from, the seed of this run among them."""
    found = scenario.resolved()
    if seed != scenario.seed:
        found["seed"] = {"value": seed, "source": "--seed"}
    return found


def as_given(scenario: Scenario) -> str:
    """The scenario file as it was; the files that it extends stand behind it as comments."""
    *below, own = scenario.given.items() or [("", "")]
    comments = [f"# extends {name}\n" + "".join(f"# {line}\n" for line in text.splitlines()) for name, text in below]
    return "\n".join([own[1], *comments])
