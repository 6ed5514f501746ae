"""What an engine adds to the kernels of a step, fitted to served runs: two families over features of runs.

    step   = sum of kernels x scale + layers x per layer + per step + sequences x per sequence
    prompt = sum of its kernels x scale x prompt scale x (interference, beside decodes)
    time   = steps x step + prompts x prompt + front

The scales say how kernels inside a model differ from micro-benchmarks. The rest is the engine's: scheduling and
launches (`layer_us`, `step_us`, `sequence_us`: what asynchronous engines hide is small here), how much of the prompts
beside it a decode feels (`interference`; prompts that come in waves are felt less), its front end (`front_ms`).
"""

from collections.abc import Sequence

import numpy as np

from kvsim.timing.families import Device
from kvsim.timing.families.interface import MICROSECOND, Column, Parameter, Rows, Values

MILLISECOND = 1e-3
KERNELS = {
    "linear": "linear layers and LM head",
    "experts": "experts",
    "attention": "attention",
    "collectives": "collectives",
}
SCALES = tuple(f"{name}_scale" for name in KERNELS)
SPREADS = (0.01, 0.1, 1.0)
"""How far an engine's scales may well lie from the median of all engines, as powers of e: candidates among which each
fit chooses by cross-validation on its own training rows (see `Engines.spread`)."""


ENGINE: Sequence[Parameter] = (
    Parameter("prompt_scale", "1", 1.0, 0.3, 12.0, "prompts against decodes", 0.3),
    Parameter("layer_us", "us", 5.0, 0.05, 400.0, "norms, rotary positions, activations, launches of a layer"),
    Parameter("step_us", "us", 300.0, 1.0, 60000.0, "scheduling, sampling and what else a step waits for"),
    Parameter("sequence_us", "us", 5.0, 0.05, 400.0, "the same for each sequence"),
    Parameter("interference", "1", 1.0, 0.2, 3.0, "part of the prompts beside it that a decode feels", 0.4),
    Parameter("front_ms", "ms", 20.0, 0.1, 5000.0, "tokenizer, server and first scheduling of a request"),
)
"""What the engine adds, beside the scales of the kernels."""


class ServedTime:
    """Seconds of served runs of one engine from their features (see `closed_loop.features`).

    `spread` is how far the scales of kernels may well lie from where a fit begins.
    """

    name = "served_run"
    columns: Sequence[str] = ("steps", "prompts", "fronts", "mixed", "layers", "sequences")

    def __init__(self, spread: float = SPREADS[0]) -> None:
        scales = (
            Parameter(f"{what}_scale", "1", 1.0, 0.2, 8.0, f"{meaning} against micro-benchmarks", spread)
            for what, meaning in KERNELS.items()
        )
        self.parameters: Sequence[Parameter] = (*scales, *ENGINE)

    def seconds(self, values: Values, rows: Rows, device: Device | None = None) -> Column:
        """Seconds of every run; the device is in the features already."""
        step = _kernels(values, rows, "d") + MICROSECOND * (
            values["layer_us"] * rows["layers"] + values["step_us"] + values["sequence_us"] * rows["sequences"]
        )
        felt = np.where(rows["mixed"] > 0, values["interference"], 1.0)
        prompt = _kernels(values, rows, "p") * values["prompt_scale"] * felt
        front = MILLISECOND * values["front_ms"] * rows["fronts"]
        return np.asarray(rows["steps"] * step + rows["prompts"] * prompt + front)


class FirstToken:
    """Mean time to first token of one engine: a front end, a queue of the steps and prompts before it (`base_s`), what
    it waits for room in the pool (`wait_s`, of a steady loop; benchmarks end before they get there), and the prompts of
    the others where all clients begin at once (`burst_s`), as a share of the requests do."""  # fmt: skip

    name = "first_token"
    columns: Sequence[str] = ("base_s", "wait_s", "burst_s")
    parameters: Sequence[Parameter] = (
        Parameter("front_ms", "ms", 20.0, 0.1, 5000.0, "tokenizer, server and first scheduling of a request"),
        Parameter("queue", "1", 1.5, 0.1, 20.0, "steps and prompts that a first token waits for, against its own"),
        Parameter("wait_share", "share", 0.5, 0.02, 2.0, "of the wait for room in a steady loop"),
        Parameter("burst_share", "share", 0.15, 0.001, 1.0, "of requests that come when all clients begin"),
    )

    def seconds(self, values: Values, rows: Rows, device: Device | None = None) -> Column:
        """Seconds to the first token of every run."""
        return np.asarray(
            MILLISECOND * values["front_ms"]
            + values["queue"] * rows["base_s"]
            + values["wait_share"] * rows["wait_s"]
            + values["burst_share"] * rows["burst_s"]
        )


def _kernels(values: Values, rows: Rows, of: str) -> Column:
    return np.asarray(
        values["linear_scale"] * (rows[f"{of}_linear"] + rows[f"{of}_head"])
        + values["experts_scale"] * rows[f"{of}_experts"]
        + values["attention_scale"] * rows[f"{of}_attention"]
        + values["collectives_scale"] * rows[f"{of}_collectives"]
    )
