"""All-reduce among `ranks` GPUs of one node.

    t = fixed + per rank x (ranks - 1) + min(one shot, two shots + its latency)

One shot: everybody reads everybody's message, (ranks - 1) x bytes over the link. Two shots: reduce-scatter and
all-gather, 2 (ranks - 1) / ranks x bytes (Thakur et al. 2005; the one-shot kernel is TensorRT-LLM's and vLLM's for
small messages). Behind CUDA graphs the launch is hidden, eager calls pay it: two families.
"""

import numpy as np

from kvsim.timing.families.device import Device
from kvsim.timing.families.interface import MICROSECOND, Column, Parameter, Rows, Values, power_mean


class AllReduce:
    """See the module. Columns: `bytes` of the message on each rank, `ranks`."""

    columns = ("bytes", "ranks")
    parameters = (
        Parameter("fixed_us", "us", 5.0, 0.1, 200.0, "a call takes at least"),
        Parameter("rank_us", "us", 0.3, 0.001, 50.0, "more for each further rank"),
        Parameter("one_shot_share", "share", 0.5, 0.01, 4.0, "of the link's rate when everybody reads everything"),
        Parameter("two_shot_us", "us", 10.0, 0.01, 200.0, "of the second round"),
        Parameter("link_share", "share", 0.7, 0.01, 1.5, "of the link's rate in two rounds"),
        Parameter("crowding_power", "1", 0.2, 0.01, 3.0, "how the rate falls with ranks beyond two"),
        Parameter("blend_power", "1", 2.0, 1.0, 9.0, "how well latency and transfer overlap"),
    )

    def __init__(self, launch: str = "graph") -> None:
        self.launch = launch
        self.name = f"all_reduce:{launch}"

    def seconds(self, values: Values, rows: Rows, device: Device) -> Column:
        """See `Family`."""
        message, ranks = rows["bytes"], rows["ranks"]
        others = ranks - 1
        link = device.link_bytes_per_s / np.maximum(1, ranks / 2) ** values["crowding_power"]
        one = others * message / (link * values["one_shot_share"])
        two = 2 * others / ranks * message / (link * values["link_share"])
        transfer = np.minimum(one, two + MICROSECOND * values["two_shot_us"])
        latency = MICROSECOND * (values["fixed_us"] + values["rank_us"] * others)
        return np.where(ranks > 1, power_mean(latency, transfer, values["blend_power"]), 0.0)
