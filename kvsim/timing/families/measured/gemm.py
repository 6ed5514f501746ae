"""Linear layers as one smooth knee between reading and computing: m tokens times a k x n matrix of 16-bit weights.

    t = fixed + ((bytes / bandwidth)^p + (flops / peak)^p)^(1/p)

The roofline (Williams et al. 2009) with a rounded knee; `p` says how sharp it is. Tiles and waves are not modelled:
where they show, `linear` fits better, and a calibration takes whichever does.
"""

from collections.abc import Sequence

import numpy as np

from kvsim.timing.families.device import Device
from kvsim.timing.families.interface import MICROSECOND, Column, Parameter, Rows, Values, power_mean
from kvsim.timing.families.measured.lines import GB

BF16_BYTES = 2
TERA = 1e12


class Gemm:
    """See the module. Columns: `m` tokens, `n` outputs, `k` inputs."""

    name = "gemm:bf16"
    columns = ("m", "n", "k")
    parameters = (
        Parameter("fixed_us", "us", 4.0, 0.001, 1000.0, "a kernel takes at least", spread=3.0),
        Parameter("bandwidth_gb_s", "GB/s", 2000.0, 1.0, 1e5, "at which weights are read", spread=3.0),
        Parameter("peak_tflop_s", "TFLOP/s", 500.0, 0.01, 1e5, "reached by large products", spread=3.0),
        Parameter("blend_power", "1", 3.0, 1.0, 12.0, "how sharp the knee is: 1 adds both times"),
    )

    def seconds(self, values: Values, rows: Rows, device: Device) -> Column:
        """See `Family`. The device does not matter."""
        reading = moved_bytes(rows) / (GB * values["bandwidth_gb_s"])
        computing = flops(rows) / (TERA * values["peak_tflop_s"])
        return np.asarray(MICROSECOND * values["fixed_us"] + power_mean(reading, computing, values["blend_power"]))

    def begins(self, rows: Rows, seconds: Column) -> Sequence[dict[str, float]]:
        """Where a fit begins: the best rates seen."""
        begin = {
            "fixed_us": 0.5 * float(seconds.min()) / MICROSECOND,
            "bandwidth_gb_s": float((moved_bytes(rows) / seconds).max()) / GB,
            "peak_tflop_s": float((flops(rows) / seconds).max()) / TERA,
            "blend_power": 3.0,
        }
        return [begin]


def moved_bytes(rows: Rows) -> Column:
    """The fewest bytes: weights, inputs and outputs once each."""
    m, n, k = rows["m"], rows["n"], rows["k"]
    return np.asarray(BF16_BYTES * (n * k + m * k + m * n))


def flops(rows: Rows) -> Column:
    """Multiplications and additions."""
    return np.asarray(2 * rows["m"] * rows["n"] * rows["k"])
