"""Linear layers: m tokens times a k x n matrix of weights.

    t = fixed + quantising + output + min over tiles and splits of (memory^p + compute^p)^(1/p)

`memory` = bytes / (share of bandwidth; of the cache's where a loop keeps small weights there, which no model's step
does: `cold`), `compute` = whole waves of tiles over the units, each tile at a share of peak. The library picks the
fastest of some tile sizes, with or without splitting k over four blocks; small tiles reach a smaller share, and work of
milliseconds is clocked down. `output` is written when a tile is done, beside nothing that the block still computes:
with a short k it counts for as much as the computing. Eight-bit layers quantise their activations first, in time with
m x k; some kernels are slow at a single row.
The idea is the roofline (Williams et al. 2009) with wave quantisation (NVIDIA, Matrix Multiplication Background).
"""

import numpy as np

from kvsim.timing.families.device import Device
from kvsim.timing.families.interface import CACHE_SHARPNESS, MICROSECOND, Column, Parameter, Rows, Values, power_mean

TILES = ((64, 64), (64, 128), (128, 128), (128, 256), (256, 128))
"""Rows and columns of the output that one block computes: the sizes of the vendors' libraries."""
FULL_TILE = 128 * 128
SPLITS = (1, 4)
"""Into how many parts k is split; the parts are added up in 32 bits, written and read once."""
MOST_VECTORS = 4
SUSTAINED_S = 1e-3
"""Work of this length loses half of what long work does."""
PARTIAL_BYTES = 8
OUTPUT_BYTES = 2

WEIGHT_BYTES = {"bf16": 2.0, "fp8": 1.0, "int8": 1.0, "int4": 0.5625, "fp4": 0.5625}
"""Bytes a weight, with the scales that 4-bit formats keep: 1 byte for 16 numbers of fp4, 2 for 32 of int4."""
ACTIVATION_BYTES = {"bf16": 2.0, "fp8": 1.0, "int8": 2.0, "int4": 2.0, "fp4": 0.5625}
QUANTISES = frozenset({"fp8", "fp4"})
WEIGHTS_ALONE = frozenset({"int4", "int8"})


class Linear:
    """See the module. Columns: `m` tokens, `n` outputs, `k` inputs; `cold` (optional) 1 where weights cannot be in the
    cache. `dtype`: bf16, fp8, int8, int4 or fp4."""  # fmt: skip

    columns = ("m", "n", "k")
    parameters = (
        Parameter("bandwidth_share", "share", 0.8, 0.1, 1.3, "of datasheet bandwidth at which weights are read"),
        Parameter("compute_share", "share", 0.75, 0.05, 1.3, "of datasheet dense FLOP/s of full tiles"),
        Parameter("fixed_us", "us", 4.0, 0.01, 60.0, "a kernel takes at least"),
        Parameter("blend_power", "1", 4.0, 1.0, 12.0, "how well reading and computing overlap: 1 not at all"),
        Parameter("split_us", "us", 2.0, 0.01, 20.0, "adding up the parts of a split k"),
        Parameter("small_tile_power", "1", 0.2, 0.01, 1.0, "how much of the rate a smaller tile loses"),
        Parameter("cache_share", "share", 2.0, 0.5, 12.0, "of datasheet bandwidth where weights come from the cache"),
        Parameter("cache_size_share", "share", 0.1, 0.01, 3.0, "of the last-level cache that holds weights"),
        Parameter("sustained_loss", "share", 0.05, 0.001, 1.0, "of the compute rate lost in work of milliseconds"),
        Parameter("one_row_us", "us", 1.0, 0.01, 60.0, "more for a single row (8 and 4 bits)"),
        Parameter("output_share", "share", 0.6, 0.05, 2.0, "of datasheet bandwidth at which the output is written"),
        Parameter("quantise_ps", "ps", 1.0, 0.001, 100.0, "of quantising one activation (8 and 4 bits)"),
    )

    def __init__(self, dtype: str = "bf16") -> None:
        self.dtype = dtype
        self.name = f"linear:{dtype}"
        self._weight, self._activation = WEIGHT_BYTES[dtype], ACTIVATION_BYTES[dtype]

    def seconds(self, values: Values, rows: Rows, device: Device) -> Column:
        """See `Family`."""
        m, n, k = rows["m"], rows["n"], rows["k"]
        weights = self._weight * n * k
        cache_bytes = values["cache_size_share"] * device.cache_bytes
        missed = 1 / (1 + (cache_bytes / np.maximum(weights, 1.0)) ** CACHE_SHARPNESS)
        missed = np.maximum(missed, rows.get("cold", np.zeros_like(m)))
        rate = device.bandwidth_bytes_per_s / (
            missed / values["bandwidth_share"] + (1 - missed) / values["cache_share"]
        )
        read, output = weights + self._activation * m * k, OUTPUT_BYTES * m * n
        unit_rate = device.flops_per_s(self.dtype) / device.units * values["compute_share"]
        power, split_s = values["blend_power"], values["split_us"] * MICROSECOND
        best = np.full(np.shape(read), np.inf)
        for height, width in TILES:
            share = min(1.0, (height * width / FULL_TILE) ** values["small_tile_power"])
            tiles = np.ceil(m / height) * np.ceil(n / width)
            for split in SPLITS:
                waves = np.ceil(tiles * split / device.units)
                compute = waves * (2 * height * width * k / split) / (unit_rate * share)
                compute = compute * (1 + values["sustained_loss"] * compute / (compute + SUSTAINED_S))
                parts = split * PARTIAL_BYTES * m * n if split > 1 else 0
                taken = power_mean((read + parts) / rate, compute, power) + (split_s if split > 1 else 0)
                best = np.minimum(best, taken)
        if self.dtype in WEIGHTS_ALONE:
            # A few vectors times packed weights have kernels of their own, without tiles: reading is all there is.
            vectors = power_mean(read / rate, 2 * m * n * k / (unit_rate * device.units), power)
            best = np.where(m <= MOST_VECTORS, np.minimum(best, vectors), best)
        quantising = 0.0
        if self.dtype in QUANTISES:
            quantising = values["quantise_ps"] * 1e-12 * m * k + values["one_row_us"] * MICROSECOND * (m == 1)
        writing = output / (device.bandwidth_bytes_per_s * values["output_share"])
        return np.asarray(values["fixed_us"] * MICROSECOND + quantising + writing + best)
