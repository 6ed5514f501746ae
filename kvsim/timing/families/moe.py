"""One mixture-of-experts layer on one GPU: routed experts alone, gate and up and down projections.

    t = fixed + per token work + (memory^p + compute^p)^(1/p)

`memory` reads the experts that the batch touches, min(all, tokens x top k) where routing is balanced as the
micro-benchmarks make it and all x (1 - (1 - k/E)^tokens) where it is drawn at random (`drawn` 1). `compute` pads the
rows of each touched expert to a tile. Tokens are sorted by expert, quantised and added up again: work per token and
choice, in time with the hidden size. Expert parallelism (`expert_ranks`) leaves a GPU a part of the experts, tensor
parallelism (`tensor_ranks`) a part of each.
"""

import numpy as np

from kvsim.timing.families.device import Device
from kvsim.timing.families.interface import MICROSECOND, Column, Parameter, Rows, Values, power_mean
from kvsim.timing.families.linear import WEIGHT_BYTES

TILE = 16
"""Least rows of a tile of the grouped matrix product."""
MATRICES = 3
COMPUTES_IN = {"bf16": "bf16", "fp8": "fp8", "fp8_block": "fp8", "fp4": "fp4", "w4a16": "bf16", "int4": "bf16",
               "int8": "bf16"}  # fmt: skip
STORED_AS = {"fp8_block": "fp8", "w4a16": "fp4"}


class MixtureOfExperts:
    """See the module. Columns: `tokens`, `hidden`, `intermediate` (of one expert), `experts`, `active` (top k),
    `tensor_ranks`, `expert_ranks`, `drawn`. `dtype`: bf16, fp8, fp8_block, fp4, w4a16 or int4."""  # fmt: skip

    columns = ("tokens", "hidden", "intermediate", "experts", "active", "tensor_ranks", "expert_ranks", "drawn")
    parameters = (
        Parameter("fixed_us", "us", 20.0, 1.0, 200.0, "a layer takes at least"),
        Parameter("bandwidth_share", "share", 0.7, 0.05, 1.3, "of datasheet bandwidth at which experts are read"),
        Parameter("compute_share", "share", 0.5, 0.02, 1.2, "of datasheet dense FLOP/s"),
        Parameter("blend_power", "1", 2.0, 1.0, 9.0, "how well reading and computing overlap"),
        Parameter("expert_us", "us", 3.0, 0.001, 60.0, "of a unit per touched expert's column of tiles"),
        Parameter("row_ps", "ps", 1.0, 0.001, 60.0, "of sorting, quantising and adding one element of one choice"),
        Parameter("tile_rows", "rows", 32.0, 1.0, 256.0, "to which the rows of an expert are padded, softly"),
    )

    def __init__(self, dtype: str = "bf16") -> None:
        self.dtype = dtype
        self.name = f"moe:{dtype}"
        self._bytes = WEIGHT_BYTES[STORED_AS.get(dtype, dtype)]
        self._computes_in = COMPUTES_IN[dtype]

    def seconds(self, values: Values, rows: Rows, device: Device) -> Column:
        """See `Family`."""
        tokens, hidden, experts, active = rows["tokens"], rows["hidden"], rows["experts"], rows["active"]
        width = rows["intermediate"] / rows["tensor_ranks"]
        local = experts / rows["expert_ranks"]
        choices = tokens * active / rows["expert_ranks"]
        touched = np.where(
            rows["drawn"] > 0,
            local * (1 - np.maximum(0.0, 1 - active / experts) ** tokens),
            np.minimum(local, np.maximum(choices, np.minimum(1.0, tokens))),
        )
        weights = MATRICES * hidden * width
        memory = touched * weights * self._bytes / (device.bandwidth_bytes_per_s * values["bandwidth_share"])
        padded = choices + touched * values["tile_rows"]
        peak = device.flops_per_s(self._computes_in) * values["compute_share"]
        compute = 2 * weights * padded / peak
        columns = touched * MATRICES * np.ceil(width / 128)
        blocks = MICROSECOND * values["expert_us"] * columns / device.units
        sorting = 1e-12 * values["row_ps"] * choices * hidden
        work = power_mean(memory, compute, values["blend_power"])
        return np.asarray(MICROSECOND * values["fixed_us"] + sorting + blocks + work)
