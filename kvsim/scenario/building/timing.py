"""Step times by name."""

import math
from pathlib import Path
from typing import Any

from kvsim.capacity.pool import stage_share
from kvsim.catalog.engines import Profile
from kvsim.catalog.footprint import Footprint
from kvsim.catalog.gpus import gpu
from kvsim.request import PS_PER_S
from kvsim.scenario.deployment import chosen
from kvsim.scenario.resolve import Scenario
from kvsim.scenario.schema.serving import NoCacheSettings
from kvsim.scenario.schema.settings import Settings
from kvsim.timing.expected import expected_error, unknown_error
from kvsim.timing.host_share import HostShareTiming
from kvsim.timing.interface import StepTiming
from kvsim.timing.pipeline import PipelineTiming
from kvsim.timing.roofline import RooflineParameters, RooflineTiming, lookup_cost
from kvsim.timing.steps.graphs import EAGER, graphs

ACTIVATION_BYTES = 2
"""Of one number that goes from a stage to the next: engines compute in 16 bits."""
MEASURED_BLOCK = 16
"""Slots of the blocks through which the measured attention kernels are taken to have found their KV: Vidur states 16,
the other tables state nothing, and vLLM's default is 16."""


def timing_of(
    scenario: Scenario,
    rules: Profile,
    footprint: Footprint,
    parameters: RooflineParameters,
    *,
    block_size: int | None,
    page_bytes: int | None,
) -> StepTiming:
    """Step times as the scenario asks for them.

    `block_size`: slots that attention looks up at a time, `page_bytes`: memory that is mapped at a time; None: none.
    """
    settings = scenario.settings
    card, placement = gpu(settings.gpu), settings.placement
    sequences = chosen(settings.engine.max_num_seqs, rules.max_num_seqs)
    captured = graphs(rules.engine, rules.version, card, sequences)
    if captured is not None and settings.engine.enforce_eager:
        captured = EAGER
    roofline = RooflineTiming(
        footprint,
        card,
        parameters,
        block_size=block_size,
        gpu_share=1 - placement.host_share,
        graphs=captured,
    )
    timing: StepTiming = roofline
    if settings.timing.name == "calibrated":
        from kvsim.timing.calibrated import CalibratedTiming  # late: it reads the calibrations
        from kvsim.timing.fitting.calibration import read

        timing = CalibratedTiming(
            footprint,
            card,
            roofline,
            engine=rules.engine,
            version=rules.version,
            graphs=captured,
            calibration=None if scenario.calibration is None else read(Path(scenario.calibration)),
            block_size=block_size,
            page_bytes=page_bytes,
            lookup=lookup_cost(parameters, block_size) / lookup_cost(parameters, MEASURED_BLOCK),
        )
    if settings.pipeline_parallel > 1:
        timing = PipelineTiming(
            timing,
            stages=settings.pipeline_parallel,
            send_ps=round(PS_PER_S * parameters.send_latency_s),
            send_token_ps=round(PS_PER_S * ACTIVATION_BYTES * footprint.model.hidden / roofline.peer_bytes_per_s),
        )
    if not placement.host_share:
        return timing
    return HostShareTiming(
        timing,
        share=placement.host_share,
        kv_bytes=math.ceil(footprint.kv_bytes_per_token * stage_share(footprint.model, settings.pipeline_parallel)),
        link_bytes_per_s=roofline.host_bytes_per_s,
        overlapped=placement.overlapped,
    )


def placed(settings: Settings) -> dict[str, str]:
    """Where the KV lies that is not on the GPU, as a line of the provenance; nothing where all of it is."""
    placement = settings.placement
    if not placement.host_share:
        return {}
    how = "beside the GPU's work" if placement.overlapped else "before the GPU's work"
    return {"placement": f"{100 * placement.host_share:g} % of each request's KV on the host, read {how}"}


def expected_error_of(settings: Settings, rules: Profile, footprint: Footprint) -> dict[str, Any]:
    """How far step times are expected to be off; no measured run kept nothing, or had parameters of a user's own."""
    if isinstance(settings.allocator, NoCacheSettings):
        return unknown_error("no engine that keeps nothing was measured")
    if settings.placement.host_share:
        return unknown_error("no run with a part of its KV on the host was measured")
    if settings.timing.file is not None:
        return unknown_error("no served run was predicted from this calibration; `kvsim calibrate validate` scores it")
    if settings.pipeline_parallel > 1:
        return unknown_error("no run on pipeline stages was measured")
    if settings.timing.parameters:
        return unknown_error("the scenario gives parameters of its own")
    return expected_error(settings.timing.name, footprint.model, gpu(settings.gpu), rules.engine, rules.version)
