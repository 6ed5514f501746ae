"""Served runs by the data sheet's step times (`timing: roofline`), to which nothing was fitted."""

from collections.abc import Mapping, Sequence

import numpy as np

from kvsim.catalog.footprint import Footprint
from kvsim.catalog.gpus import gpu
from kvsim.errors import InputError
from kvsim.request import PS_PER_S
from kvsim.request import Sequence as Prompt
from kvsim.step import Chunk, Rows, StepPlan
from kvsim.study.validation.served.closed_loop import BUDGET_TOKENS
from kvsim.study.validation.served.runs import ServedRun, device_of, known_model
from kvsim.timing.families.interface import Column
from kvsim.timing.roofline import RooflineTiming

BLOCK_SIZE = 16
"""Slots of a block where a source states none: the default of the engines."""
QUANTITIES = ("tpot", "step", "ttft")


def by_data_sheet(runs: Sequence[ServedRun], columns: Mapping[str, Column]) -> Column:
    """Seconds of every run from its data sheet, NaN of those that no scenario can state.

    These are groups with a batch each, weights of types that a scenario does not have, cards that the catalogue lacks,
    and whole batches. `columns` are the runs' features (see `closed_loop`).
    """
    timings: dict[tuple[object, ...], RooflineTiming | None] = {}
    found = np.full(len(runs), np.nan)
    for index, run in enumerate(runs):
        if run.quantity not in QUANTITIES or run.layout.data_parallel > 1:
            continue
        key = run.gpu, run.model, run.layout.tensor_parallel, run.dtype, run.kv_dtype
        if key not in timings:
            timings[key] = _timing(run)
        timing = timings[key]
        if timing is not None:
            found[index] = _seconds(timing, run, {name: float(column[index]) for name, column in columns.items()})
    return found


def _timing(run: ServedRun) -> RooflineTiming | None:
    try:
        footprint = Footprint(
            known_model(run.model),
            tensor_parallel=run.layout.tensor_parallel,
            kv_dtype=run.kv_dtype,
            weights_dtype=run.dtype,
        )
        return RooflineTiming(footprint, gpu(device_of(run).name), block_size=BLOCK_SIZE)
    except (InputError, ValueError):
        return None


def _seconds(timing: RooflineTiming, run: ServedRun, feature: Mapping[str, float]) -> float:
    """Steps and prompts of a run, each as often as it counts; a first token also waits for room in the pool."""
    rows, length = max(1, int(feature["sequences"])), int(run.prompt)
    step = timing.step_ps(StepPlan(decodes=rows, rows=Rows(rows, int(rows * (run.prompt + run.output / 2)))))
    together = max(1, min(rows, BUDGET_TOKENS // length))
    chunks = [Chunk(Prompt(number, length, None), length, 0) for number in range(together)]
    prompt = timing.step_ps(StepPlan(chunks=chunks)) / together
    steps = feature["steps"] + feature["wait_steps"]
    prompts = feature["prompts"] + feature["wait_prompts"]
    return (steps * step + prompts * prompt) / PS_PER_S
