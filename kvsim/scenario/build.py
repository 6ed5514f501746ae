"""From a checked scenario to the objects of a run: names become policies, catalogue entries and numbers."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kvsim.capacity.device import Device
from kvsim.capacity.pages import page_row
from kvsim.capacity.pool import stage_share
from kvsim.catalog.engines import profile
from kvsim.catalog.footprint import Footprint
from kvsim.catalog.models import model
from kvsim.engine.fleet import Routing
from kvsim.engine.flushes import Flushes
from kvsim.errors import InputError
from kvsim.metrics.cost import Price
from kvsim.metrics.summary import Slo
from kvsim.scenario.building.allocators import block_size_of, units
from kvsim.scenario.building.cache import cache_is_there, flushes_of
from kvsim.scenario.building.engines import Serving
from kvsim.scenario.building.fleet import routing_of
from kvsim.scenario.building.price import price_of, price_text
from kvsim.scenario.building.timing import expected_error_of, placed, timing_of
from kvsim.scenario.building.traces import reshaped, traced
from kvsim.scenario.deployment import planned
from kvsim.scenario.generated import generated, kinds_of_client, layers, limit
from kvsim.scenario.messages import located
from kvsim.scenario.notes import not_modelled, notes
from kvsim.scenario.pool import pool
from kvsim.scenario.resolve import Scenario
from kvsim.scenario.schema.fields import MOST
from kvsim.scenario.schema.serving import VirtualSettings
from kvsim.scenario.schema.settings import Settings
from kvsim.scenario.schema.traffic import SloSettings, TimesOutput
from kvsim.scheduling.interface import Scheduler
from kvsim.timing.host_share import as_fraction
from kvsim.timing.interface import StepTiming
from kvsim.timing.roofline import roofline_parameters
from kvsim.workload.clients.beam import Beam
from kvsim.workload.clients.limits import Patience
from kvsim.workload.layers.warm import Warm
from kvsim.workload.stream import LoopTraffic, Traffic, Workload


@dataclass(frozen=True, slots=True)
class Simulation:
    """Everything `engine.run.simulate` and the summary need, built afresh for each run (allocators have state)."""

    workload: Workload
    traffic: Traffic | LoopTraffic
    scheduler: Scheduler
    flushes: Callable[[], Flushes] | None
    """Makes who empties the prefix cache of a replica; None: nobody does."""
    another: Callable[[], Scheduler]
    """Makes a further scheduler like that one, over an allocator of its own."""
    replicas: int
    routing: Routing | None
    """How requests find their replica; None where there is one alone."""
    device: Device | None
    """The ledger of each rank's card; None where what a step takes is not known."""
    timing: StepTiming
    max_model_len: int
    bytes_per_slot: int
    block_size: int | None
    slo: Slo
    price: Price | None
    """What an hour of one GPU costs; None: nobody knows."""
    provenance: dict[str, str]
    expected_error: dict[str, Any]
    """How far step times are off in runs like this one."""
    not_modelled: list[str]
    notes: list[str]


def build(scenario: Scenario, seed: int) -> Simulation:
    """The parts of one run of `scenario` with `seed`.

    Raises InputError where names, numbers and the model do not go together, DoesNotFitError where the card leaves no
    room for KV.
    """
    try:
        return _build(scenario, seed)
    except ValueError as error:
        raise InputError(located(str(error), scenario.name, scenario.origins)) from error


def _build(scenario: Scenario, seed: int) -> Simulation:
    settings, fleet = scenario.settings, scenario.settings.fleet
    rules = profile(settings.engine.profile)
    footprint = Footprint(
        model(scenario.model),
        tensor_parallel=settings.tensor_parallel,
        kv_dtype=settings.model.kv_dtype,
        weights_dtype=settings.model.weights_dtype,
    )
    if not footprint.model.weights_known:
        known = "params_total_b is not known, and no field describes all weights, so step times cannot be estimated"
        raise ValueError(f"model.name: {footprint.model.name}: {known}")
    stages, most = settings.pipeline_parallel, footprint.model.layers
    if stages > most:
        raise ValueError(f"pipeline_parallel: {stages} is more than the {most} layers of {footprint.model.name}")
    limit = settings.engine.max_model_len or footprint.model.max_context
    if limit is None:
        raise InputError(
            f"scenario {scenario.name}: engine.max_model_len: the catalogue knows no limit of "
            f"{footprint.model.name}; give one, for example `max_model_len: 8192`"
        )
    parameters = roofline_parameters(settings.timing.parameters)
    row = page_row(footprint, settings.allocator.page) if isinstance(settings.allocator, VirtualSettings) else None
    start = planned(scenario, rules)
    kv = pool(settings, footprint, block_size=block_size_of(settings, rules), row=row, planned=start)
    if kv.slots > MOST:
        raise ValueError(f"pool_slots is {kv.slots:,}; a pool has at most {MOST:,} slots")
    on_gpu = 1 - as_fraction(settings.placement.host_share)
    stage_bytes = math.ceil(footprint.kv_bytes_per_token * stage_share(footprint.model, settings.pipeline_parallel))
    slot_bytes = math.ceil(stage_bytes * on_gpu)
    device = None if start is None else Device.serving(start, kv.slots * slot_bytes)
    ahead = not parameters.page_map_s
    serving = Serving(
        scenario=scenario,
        rules=rules,
        footprint=footprint,
        slots=kv.slots,
        max_model_len=limit,
        row=row,
        mapped_ahead=ahead,
    )
    scheduler = serving.scheduler(device)
    allocator = scheduler.allocator
    block_size, read_size = units(allocator, rules)
    page_bytes = None if row is None else row.page_bytes
    timing = timing_of(scenario, rules, footprint, parameters, block_size=read_size, page_bytes=page_bytes)
    traffic = _traffic(scenario, identities=allocator.caches)
    cache_is_there(settings, allocator.caches)
    price = price_of(settings)
    return Simulation(
        workload=_workload(settings, reshaped(settings.workload, traffic), seed),
        traffic=traffic,
        scheduler=scheduler,
        flushes=flushes_of(settings),
        another=lambda: serving.scheduler(device),
        replicas=1 if fleet is None else fleet.replicas,
        routing=None if fleet is None else routing_of(fleet, seed=seed, caches=allocator.caches),
        device=device,
        timing=timing,
        max_model_len=limit,
        bytes_per_slot=slot_bytes,
        block_size=block_size,
        slo=_slo(settings.slo),
        price=price,
        provenance={
            "timing": timing.provenance,
            "pool": kv.provenance,
            **placed(settings),
            "engine": rules.name,
            "workload": _workload_provenance(settings),
            "price": price_text(settings.gpu, price),
        },
        expected_error=expected_error_of(settings, rules, footprint),
        not_modelled=not_modelled(settings, rules, footprint),
        notes=notes(
            settings,
            rules,
            footprint,
            kv.slots,
            device,
            start,
            slot_bytes=slot_bytes,
            host_bytes=stage_bytes - slot_bytes,
        ),
    )


def _slo(settings: SloSettings) -> Slo:
    """The goals; those of a class are the general ones where it says nothing else."""
    classes = {
        name: Slo(goals.ttft or settings.ttft, goals.tpot or settings.tpot, goals.e2e or settings.e2e)
        for name, goals in (settings.classes or {}).items()
    }
    return Slo(settings.ttft, settings.tpot, settings.e2e, classes)


def _traffic(scenario: Scenario, *, identities: bool) -> Traffic | LoopTraffic:
    if scenario.trace is not None:
        return traced(scenario, scenario.trace, identities=identities)
    return generated(scenario)


def _workload(settings: Settings, traffic: Traffic | LoopTraffic, seed: int) -> Workload:
    workload = settings.workload
    cancel = workload.cancel
    return Workload(
        traffic,
        seed=seed,
        samples=workload.samples,
        beam=None if workload.beam is None else Beam(turnover=workload.beam.turnover),
        layers=layers(workload),
        max_tokens=limit(workload.max_tokens),
        cancel=None if cancel is None else Patience(after_s=cancel.after / 1e12, share=cancel.share),
        priority=workload.priority,
        tenant=workload.tenant,
        mix=kinds_of_client(workload),
        warm=None if workload.warm is None else Warm(requests=workload.warm.requests or 0, shared=workload.warm.shared),
    )


def _workload_provenance(settings: Settings) -> str:
    workload = settings.workload
    text = "generated from distributions" if workload.trace is None else f"trace {workload.trace}"
    if workload.preset is not None:
        text = f"generated, lengths of preset {workload.preset}"
    elif workload.lengths_of is not None:
        text = f"generated, lengths of the rows of {workload.lengths_of}"
    if workload.clients is not None:
        text += f", sent by {workload.clients.count} clients in a loop"
    elif workload.sessions is not None:
        recorded = "" if workload.trace is None else f" as recorded, {workload.sessions.loop} loop"
        text += f", in sessions{recorded}"
    if workload.trace is not None and workload.arrivals is not None:
        text += f" that begin by {workload.arrivals.process} arrivals"
    elif workload.trace is not None and workload.rate is not None:
        what = "requests" if workload.sessions is None else "sessions"
        text += f", time stretched to {workload.rate:g} {what}/s"
    if workload.reshape is not None:
        text += ", reshaped"
        if workload.reshape.share < 1:
            what = "sessions" if workload.sessions is not None or workload.reshape.by == "session" else "requests"
            text += f" to {workload.reshape.share:.3g} of the {what} (fewer, at their times)"
        if workload.reshape.rate_times != 1:
            text += f", {workload.reshape.rate_times:g} times the rate (a time warp)"
    if isinstance(workload.max_tokens, TimesOutput):
        text += "; max_tokens is an oracle (a multiple of the true output)"
    return text
