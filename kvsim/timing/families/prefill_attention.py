"""Prefill attention: `tokens` new tokens of each of `sequences` sequences, after `cached` tokens that have their KV.

    t = fixed + (compute^p + memory^p + blocks^p)^(1/p)
    compute = 4 heads dim sequences padded tokens (cached + causal x tokens + ramp) / (share of peak)

Query rows are padded to tiles of 128; a kernel that packs the query heads of a group into one tile (FlashAttention 3)
pads less. Any engine gives a single new token to a decode kernel, which packs the heads of a group, computes next to
nothing and has costs of its own. `causal` is 0.5 for a kernel that skips what a causal mask hides, about 1 for one that
does not: a property of the kernel. `ramp` stands for filling the pipeline. Fewer tiles than units leave units idle.
FLOPs of attention: FlashAttention-2 (Dao 2023), section 4.1.
"""

import numpy as np

from kvsim.timing.families.device import Device
from kvsim.timing.families.interface import MICROSECOND, Column, Parameter, Rows, Values, power_mean

TILE = 128
ELEMENT_BYTES = 2


class PrefillAttention:
    """See the module. Columns: `sequences`, `tokens`, `cached`, `heads`, `kv_heads`, `head_dim`, all of one GPU."""

    columns = ("sequences", "tokens", "cached", "heads", "kv_heads", "head_dim")
    parameters = (
        Parameter("fixed_us", "us", 10.0, 0.5, 90.0, "a kernel takes at least"),
        Parameter("compute_share", "share", 0.6, 0.05, 1.2, "of datasheet dense bf16 FLOP/s"),
        Parameter("causal", "1", 0.55, 0.3, 1.6, "part of the new tokens that each new token is multiplied with"),
        Parameter("ramp_tokens", "tokens", 150.0, 0.1, 3000.0, "context that filling the pipeline is worth"),
        Parameter("bandwidth_share", "share", 0.6, 0.05, 4.0, "of datasheet bandwidth for queries, KV and output"),
        Parameter("block_us", "us", 1.0, 0.001, 30.0, "of a unit per tile"),
        Parameter("blend_power", "1", 1.5, 1.0, 9.0, "how well the three overlap"),
        Parameter("one_token_us", "us", 10.0, 0.5, 90.0, "a kernel takes at least that computes single tokens"),
        Parameter("one_block_us", "us", 1.0, 0.001, 30.0, "of a unit per KV head of such a sequence"),
    )

    def __init__(self, packed: bool = False) -> None:
        self.packed = packed
        self.name = f"prefill_attention:{'packed' if packed else 'by_head'}"

    def seconds(self, values: Values, rows: Rows, device: Device) -> Column:
        """See `Family`."""
        sequences, tokens, cached = rows["sequences"], rows["tokens"], rows["cached"]
        heads, kv_heads, head_dim = rows["heads"], rows["kv_heads"], rows["head_dim"]
        one = tokens == 1
        group = np.where(one | self.packed, heads / kv_heads, 1.0)
        padded = np.ceil(tokens * group / TILE) * TILE / group
        tiles = sequences * heads * padded / TILE
        walked = cached + values["causal"] * tokens + values["ramp_tokens"]
        flops = 4 * heads * head_dim * sequences * padded * walked
        compute = flops / (device.bf16_flops_per_s * values["compute_share"]) * np.maximum(1, device.units / tiles)
        moved = 2 * ELEMENT_BYTES * head_dim * sequences * (heads * tokens + kv_heads * (tokens + cached))
        memory = moved / (device.bandwidth_bytes_per_s * values["bandwidth_share"])
        blocks = MICROSECOND * np.where(one, values["one_block_us"], values["block_us"]) * tiles / device.units
        power = values["blend_power"]
        work = power_mean(power_mean(np.where(one, 0.0, compute), memory, power), blocks, power)
        return np.asarray(MICROSECOND * np.where(one, values["one_token_us"], values["fixed_us"]) + work)
