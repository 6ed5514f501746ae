"""Step times by name."""

from typing import Any

from kvsim.catalog.engines import Profile
from kvsim.catalog.footprint import Footprint
from kvsim.catalog.gpus import gpu
from kvsim.scenario.schema.serving import NoCacheSettings
from kvsim.scenario.schema.settings import Settings
from kvsim.timing.expected import expected_error, unknown_error
from kvsim.timing.interface import StepTiming
from kvsim.timing.roofline import RooflineParameters, RooflineTiming


def timing_of(
    settings: Settings,
    rules: Profile,
    footprint: Footprint,
    parameters: RooflineParameters,
    *,
    block_size: int | None,
) -> StepTiming:
    """Step times as the scenario asks for them; `block_size`: slots that attention looks up at a time, None: none."""
    card = gpu(settings.gpu)
    roofline = RooflineTiming(footprint, card, parameters, block_size=block_size)
    if settings.timing.name == "roofline":
        return roofline
    from kvsim.timing.calibrated import CalibratedTiming  # late: it reads the calibrations

    return CalibratedTiming(footprint, card, roofline, engine=rules.engine, version=rules.version)


def expected_error_of(settings: Settings, rules: Profile, footprint: Footprint) -> dict[str, Any]:
    """How far step times are expected to be off; no measured run kept nothing, or had parameters of a user's own."""
    if isinstance(settings.allocator, NoCacheSettings):
        return unknown_error("no engine that keeps nothing was measured")
    if settings.timing.parameters:
        return unknown_error("the scenario gives parameters of its own")
    return expected_error(settings.timing.name, footprint.model, gpu(settings.gpu), rules.engine, rules.version)
