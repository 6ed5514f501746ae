"""From what a replica leaves behind to what a Result is made of."""

from typing import Any

from kvsim.engine.run import RunLog
from kvsim.metrics.summary import Moved, Run
from kvsim.scenario.build import Simulation
from kvsim.scenario.resolve import Scenario
from kvsim.scenario.schema.settings import Settings


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
        residency=recording.cache.residency if recording.cache else None,
        left_range=[] if recording.fitted is None else [str(outside) for outside in recording.fitted.outside()],
        flushes=tuple(recording.flushes),
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
