"""Decode attention: one new token of each of `sequences` sequences against `context` cached tokens.

    t = fixed + chain x context + split + swap + (memory^p + blocks^p + unsplit^p)^(1/p)

`memory` reads the KV, from the last-level cache where all of it fits (a micro-benchmark's loop finds it there, a
model's step does not: `cold`). `blocks` is what each KV head of each sequence costs however short it is. With
grouped heads (GQA) long contexts are split over units (FlashDecoding, Dao et al. 2023): the split costs something
from 256 tokens on, and a chain along the context remains; some kernels also lay the queries of a group out anew
(`swap`). Without groups an older kernel does not split: whole waves of blocks walk their contexts alone.
"""

import numpy as np

from kvsim.timing.families.device import Device
from kvsim.timing.families.interface import (
    CACHE_SHARPNESS,
    MICROSECOND,
    NANOSECOND,
    Column,
    Parameter,
    Rows,
    Values,
    power_mean,
)

SPLIT_FROM_TOKENS = 256
FULL_HEAD = 128
QUERY_BYTES = 2
KV_BYTES = {"bf16": 2.0, "fp8": 1.0, "int8": 1.0, "int4": 0.5}


class DecodeAttention:
    """See the module. Columns: `sequences`, `context`, `heads`, `kv_heads`, `head_dim`, all of one GPU, and `cold` 1
    where the KV cannot be in the cache. `kv_elements` (optional) is what one token of one KV head holds, 2 x `head_dim`
    unless given: a latent cache (MLA) keeps keys and values in one vector."""  # fmt: skip

    columns = ("sequences", "context", "heads", "kv_heads", "head_dim", "cold")
    parameters = (
        Parameter("fixed_us", "us", 10.0, 0.5, 60.0, "a kernel takes at least"),
        Parameter("bandwidth_share", "share", 0.85, 0.1, 1.2, "of datasheet bandwidth at which KV is read"),
        Parameter("cache_share", "share", 2.0, 0.5, 12.0, "of datasheet bandwidth where KV comes from the cache"),
        Parameter("cache_size_share", "share", 0.8, 0.05, 3.0, "of the last-level cache that holds KV"),
        Parameter("compute_share", "share", 0.5, 0.05, 1.0, "of datasheet FLOP/s (rules latent attention alone)"),
        Parameter("block_us", "us", 3.0, 0.05, 20.0, "of a unit per KV head and sequence"),
        Parameter("query_us", "us", 0.1, 0.001, 5.0, "of a unit per query head and sequence"),
        Parameter("head_dim_power", "1", 0.3, 0.01, 2.0, "how these two grow with the head dimension"),
        Parameter("blend_power", "1", 2.5, 1.0, 12.0, "how well reading and the costs of blocks overlap"),
        Parameter("chain_ns", "ns", 0.2, 0.001, 20.0, "per token of the longest context, whatever the split"),
        Parameter("split_us", "us", 1.5, 0.01, 20.0, "of splitting contexts of 256 tokens and more"),
        Parameter("swap_us", "us", 1.0, 0.01, 30.0, "of laying out grouped queries of several sequences"),
        Parameter("unsplit_ns", "ns", 2.0, 0.01, 60.0, "per token and wave of contexts that are not split"),
    )

    def __init__(self, kv_dtype: str = "bf16") -> None:
        self.kv_dtype = kv_dtype
        self.name = f"decode_attention:{kv_dtype}"
        self._bytes = KV_BYTES[kv_dtype]

    def seconds(self, values: Values, rows: Rows, device: Device) -> Column:
        """See `Family`."""
        sequences, context, heads = rows["sequences"], rows["context"], rows["heads"]
        kv_heads, head_dim = rows["kv_heads"], rows["head_dim"]
        elements = rows.get("kv_elements", 2 * head_dim)
        grouped = heads > kv_heads
        kv_bytes = elements * kv_heads * sequences * context * self._bytes
        moved = kv_bytes + 2 * QUERY_BYTES * heads * head_dim * sequences
        cache_bytes = values["cache_size_share"] * device.cache_bytes
        missed = 1 / (1 + (cache_bytes / np.maximum(moved, 1.0)) ** CACHE_SHARPNESS)
        missed = np.maximum(missed, rows["cold"])
        memory = moved / device.bandwidth_bytes_per_s
        memory = memory * (missed / values["bandwidth_share"] + (1 - missed) / values["cache_share"])
        flops = 4 * heads * head_dim * sequences * context
        compute = flops / (device.bf16_flops_per_s * values["compute_share"])
        per_sequence = values["block_us"] * kv_heads + values["query_us"] * heads
        size = (np.minimum(head_dim, 2 * FULL_HEAD) / FULL_HEAD) ** values["head_dim_power"]
        blocks = MICROSECOND * per_sequence * sequences * size / device.units
        waves = np.ceil(sequences * kv_heads / device.units)
        alone = np.where(grouped, 0.0, NANOSECOND * values["unsplit_ns"] * context * waves)
        power = values["blend_power"]
        work = power_mean(power_mean(np.maximum(memory, compute), blocks, power), alone, power)
        fixed = values["fixed_us"] + np.where(
            grouped,
            values["split_us"] * (context >= SPLIT_FROM_TOKENS)
            + values["swap_us"] * ((sequences > 1) & (kv_heads > 1))
            + values["chain_ns"] * NANOSECOND / MICROSECOND * context,
            0.0,
        )
        return np.asarray(MICROSECOND * fixed + work)
