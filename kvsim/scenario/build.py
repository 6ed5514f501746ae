"""From a checked scenario to the objects of a run: names become policies, catalogue entries and numbers."""

from dataclasses import dataclass
from typing import Any

from kvsim.capacity.device import Device
from kvsim.capacity.pages import PageRow, page_row
from kvsim.capacity.tensors import kv_tensors
from kvsim.catalog.engines import Profile, profile
from kvsim.catalog.footprint import Footprint
from kvsim.catalog.gpus import gpu
from kvsim.catalog.models import model
from kvsim.errors import InputError
from kvsim.memory.contiguous import ContiguousAllocator
from kvsim.memory.host import HostPool
from kvsim.memory.interface import Allocator
from kvsim.memory.no_cache import NoCacheAllocator
from kvsim.memory.paged import PagedAllocator
from kvsim.memory.reserve import ReserveAllocator
from kvsim.memory.virtual import VirtualAllocator
from kvsim.metrics.summary import Slo
from kvsim.scenario.deployment import chosen, planned
from kvsim.scenario.messages import located
from kvsim.scenario.notes import not_modelled, notes
from kvsim.scenario.pool import pool
from kvsim.scenario.resolve import Scenario
from kvsim.scenario.schema.fields import MOST
from kvsim.scenario.schema.serving import (
    ContiguousSettings,
    NoCacheSettings,
    PagedSettings,
    ReserveSettings,
    VirtualSettings,
)
from kvsim.scenario.schema.settings import Settings
from kvsim.scenario.schema.traffic import LengthSettings, TimesOutput
from kvsim.scheduling.batching import BatchScheduler
from kvsim.scheduling.continuous import ContinuousScheduler
from kvsim.scheduling.prefill_first import PrefillFirstScheduler
from kvsim.scheduling.static import StaticScheduler
from kvsim.timing.interface import StepTiming
from kvsim.timing.roofline import RooflineParameters, RooflineTiming, roofline_parameters
from kvsim.workload.arrivals import ARRIVALS
from kvsim.workload.beam import Beam
from kvsim.workload.client import Patience
from kvsim.workload.lengths import LENGTHS, LengthDistribution
from kvsim.workload.stream import GeneratedTraffic, Traffic, Workload
from kvsim.workload.trace import TraceTraffic


@dataclass(frozen=True, slots=True)
class Simulation:
    """Everything `engine.run.simulate` and the summary need, built afresh for each run (allocators have state)."""

    workload: Workload
    traffic: Traffic
    scheduler: BatchScheduler
    device: Device | None
    """The ledger of each rank's card; None where what a step takes is not known."""
    timing: StepTiming
    max_model_len: int
    bytes_per_slot: int
    block_size: int | None
    slo: Slo
    provenance: dict[str, str]
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
    settings = scenario.settings
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
    limit = settings.engine.max_model_len or footprint.model.max_context
    if limit is None:
        raise InputError(
            f"scenario {scenario.name}: engine.max_model_len: the catalogue knows no limit of "
            f"{footprint.model.name}; give one, for example `max_model_len: 8192`"
        )
    parameters = roofline_parameters(settings.timing.parameters)
    row = page_row(footprint, settings.allocator.page) if isinstance(settings.allocator, VirtualSettings) else None
    start = planned(scenario, rules)
    kv = pool(settings, footprint, block_size=_block_size(settings, rules), row=row, planned=start)
    if kv.slots > MOST:
        raise ValueError(f"pool_slots is {kv.slots:,}; a pool has at most {MOST:,} slots")
    allocator = _allocator(settings, rules, footprint, kv.slots, limit, row, parameters)
    block_size = allocator.block_size if isinstance(allocator, PagedAllocator) else None
    timing = _timing(settings, rules, footprint, parameters, block_size)
    device = None if start is None else Device.serving(start, kv.slots * footprint.kv_bytes_per_token)
    scheduler = _scheduler(scenario, rules, allocator, limit, footprint.kv_bytes_per_token, device)
    traffic = _traffic(scenario)
    return Simulation(
        workload=_workload(settings, traffic, seed),
        traffic=traffic,
        scheduler=scheduler,
        device=device,
        timing=timing,
        max_model_len=limit,
        bytes_per_slot=footprint.kv_bytes_per_token,
        block_size=block_size,
        slo=Slo(settings.slo.ttft, settings.slo.tpot, settings.slo.e2e),
        provenance={
            "timing": timing.provenance,
            "pool": kv.provenance,
            "engine": rules.name,
            "workload": _workload_provenance(settings),
        },
        not_modelled=not_modelled(settings, rules, footprint),
        notes=notes(settings, rules, footprint, kv.slots, device, start),
    )


def _timing(
    settings: Settings, rules: Profile, footprint: Footprint, parameters: RooflineParameters, block_size: int | None
) -> StepTiming:
    """Step times as the scenario asks for them."""
    card = gpu(settings.gpu)
    roofline = RooflineTiming(footprint, card, parameters, block_size=block_size)
    if settings.timing.name == "roofline":
        return roofline
    from kvsim.timing.calibrated import CalibratedTiming  # late: it reads the calibrations

    return CalibratedTiming(footprint, card, roofline, engine=rules.engine, version=rules.version)


def _scheduler(
    scenario: Scenario,
    rules: Profile,
    allocator: Allocator,
    max_model_len: int,
    kv_bytes_per_token: int,
    device: Device | None,
) -> BatchScheduler:
    engine = scenario.settings.engine
    preemption = chosen(engine.preemption, rules.preemption)
    swap_space_bytes = chosen(engine.swap_space, rules.swap_space_bytes)
    limits: dict[str, Any] = {
        "max_num_seqs": chosen(engine.max_num_seqs, rules.max_num_seqs),
        "max_num_batched_tokens": chosen(engine.max_num_batched_tokens, scenario.token_budget),
        "preemption": preemption,
        "victim": chosen(engine.victim, "last"),
        "max_model_len": max_model_len,
        "host": HostPool(swap_space_bytes // kv_bytes_per_token) if preemption == "swap" else None,
    }
    if device is not None and allocator.keeps:
        budget, sequences = limits["max_num_batched_tokens"], limits["max_num_seqs"]
        tokens = device.most_tokens(budget, sequences)
        # A pool beside which not even a step of decoding has room is a what-if, and said to be one in the notes.
        if sequences <= tokens < budget:
            limits["workspace_tokens"] = tokens
    name = chosen(engine.scheduler, rules.scheduler)
    if name == "static":
        return StaticScheduler(allocator, **limits)
    limits["kernel"] = chosen(engine.kernel, rules.kernel)
    if name == "prefill-first":
        return PrefillFirstScheduler(allocator, **limits)
    return ContinuousScheduler(
        allocator,
        long_prefill_token_threshold=chosen(engine.long_prefill_token_threshold, rules.long_prefill_token_threshold),
        chunked_prefill=chosen(engine.chunked_prefill, rules.chunked_prefill),
        reserve_full_isl=chosen(engine.reserve_full_isl, rules.reserve_full_isl),
        **limits,
    )


def _block_size(settings: Settings, rules: Profile) -> int:
    """Slots of a block: the paged allocator's, or the profile's for allocators that have none."""
    allocator = settings.allocator
    return chosen(allocator.block_size if isinstance(allocator, PagedSettings) else None, rules.block_size)


def _allocator(
    settings: Settings,
    rules: Profile,
    footprint: Footprint,
    pool_slots: int,
    max_model_len: int,
    row: PageRow | None,
    parameters: RooflineParameters,
) -> Allocator:
    allocator = settings.allocator
    try:
        if isinstance(allocator, NoCacheSettings):
            return NoCacheAllocator()
        if isinstance(allocator, VirtualSettings):
            assert row is not None
            # Mapping that takes no time is mapping that no step waits for.
            ahead = not parameters.page_map_s
            return VirtualAllocator(pool_slots, page_tokens=row.tokens, row_pages=row.pages, mapped_ahead=ahead)
        if isinstance(allocator, PagedSettings):
            return PagedAllocator(
                pool_slots,
                block_size=_block_size(settings, rules),
                watermark=chosen(allocator.watermark, rules.watermark),
            )
        if isinstance(allocator, ContiguousSettings):
            tensors, rounding_slots = kv_tensors(footprint) if allocator.growth == "cat" else (1, 1)
            return ContiguousAllocator(
                pool_slots,
                fit=allocator.fit,
                growth=allocator.growth,
                chunk=allocator.chunk,
                tensors=tensors,
                rounding_slots=1 if allocator.fit == "buddy" else rounding_slots,
                compaction=allocator.compaction,
            )
        assert isinstance(allocator, ReserveSettings)
        return ReserveAllocator(pool_slots, max_model_len=max_model_len, size=allocator.size, fit=allocator.fit)
    except ValueError as error:
        raise ValueError(f"allocator {allocator.name}: {error}") from error


def _traffic(scenario: Scenario) -> Traffic:
    workload = scenario.settings.workload
    if scenario.trace is not None:
        return TraceTraffic(
            scenario.trace,
            format=workload.format,
            on_bad_row=workload.on_bad_row,
            sort=workload.sort,
            requests=workload.requests,
            rate=workload.rate,
        )
    # The scenario was checked: generated traffic has a rate, arrivals and both lengths.
    assert workload.rate is not None
    assert workload.arrivals is not None
    assert workload.prompt_tokens is not None
    assert workload.output_tokens is not None
    process = ARRIVALS[workload.arrivals.process]
    shape = {} if workload.arrivals.cv is None else {"cv": workload.arrivals.cv}
    return GeneratedTraffic(
        arrivals=process(rate=workload.rate, **shape),
        prompt_tokens=_lengths(workload.prompt_tokens),
        output_tokens=_lengths(workload.output_tokens),
        requests=workload.requests,
    )


def _lengths(settings: LengthSettings) -> LengthDistribution:
    return LENGTHS[settings.distribution](**settings.parameters)


def _workload(settings: Settings, traffic: Traffic, seed: int) -> Workload:
    workload = settings.workload
    max_tokens = workload.max_tokens
    cancel = workload.cancel
    return Workload(
        traffic,
        seed=seed,
        samples=workload.samples,
        beam=None if workload.beam is None else Beam(turnover=workload.beam.turnover),
        max_tokens={"times_output": max_tokens.times_output} if isinstance(max_tokens, TimesOutput) else max_tokens,
        cancel=None if cancel is None else Patience(after_s=cancel.after / 1e12, share=cancel.share),
        priority=workload.priority,
        tenant=workload.tenant,
    )


def _workload_provenance(settings: Settings) -> str:
    workload = settings.workload
    text = "generated from distributions" if workload.trace is None else f"trace {workload.trace}"
    if workload.trace is not None and workload.rate is not None:
        text += f", time stretched to {workload.rate:g} requests/s"
    if isinstance(workload.max_tokens, TimesOutput):
        text += "; max_tokens is an oracle (a multiple of the true output)"
    return text
