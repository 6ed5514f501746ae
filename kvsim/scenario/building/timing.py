"""Step times by name, and where they are extrapolated."""

from pathlib import Path
from typing import TYPE_CHECKING

from kvsim.catalog.engines import Profile
from kvsim.catalog.footprint import Footprint
from kvsim.catalog.gpus import gpu
from kvsim.scenario.deployment import chosen
from kvsim.scenario.resolve import Scenario
from kvsim.timing.interface import StepTiming
from kvsim.timing.roofline import RooflineParameters, RooflineTiming

if TYPE_CHECKING:
    from kvsim.timing.fitting.calibration import Calibration


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
    card = gpu(scenario.settings.gpu)
    known = calibration_of(scenario)
    roofline = RooflineTiming(footprint, card, parameters, block_size=block_size)
    if scenario.settings.timing.name == "roofline":
        return roofline
    from kvsim.timing.calibrated import CalibratedTiming  # late: it reads the calibrations

    return CalibratedTiming(
        footprint,
        card,
        roofline,
        engine=rules.engine,
        version=rules.version,
        calibration=known,
        block_size=block_size,
        page_bytes=page_bytes,
    )


def calibration_of(scenario: Scenario) -> "Calibration | None":
    """The calibration that the scenario names; None: the one that comes with kvsim, or none is needed."""
    if scenario.calibration is None:
        return None
    from kvsim.timing.fitting.calibration import read  # late: few scenarios have one

    return read(Path(scenario.calibration))


def extrapolated(
    scenario: Scenario, rules: Profile, footprint: Footprint, *, block_size: int | None, max_model_len: int
) -> list[str]:
    """Sentences on where this run may leave what its GPU has measured."""
    known = calibration_of(scenario)
    if known is None:
        return []
    from kvsim.timing.fitting.ranges import Asked, beyond

    engine, model = scenario.settings.engine, footprint.model
    heads = max(1.0, (model.full_kv_heads or model.heads) / footprint.tensor_parallel)
    asked = Asked(
        sequences=chosen(engine.max_num_seqs, rules.max_num_seqs),
        tokens=chosen(engine.max_num_batched_tokens, scenario.token_budget),
        context=max_model_len,
        group=model.heads / footprint.tensor_parallel / heads,
        block=block_size,
    )
    return list(beyond(known, gpu(scenario.settings.gpu).name, asked))
