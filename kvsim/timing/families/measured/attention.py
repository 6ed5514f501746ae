"""Attention as a GPU's own microbenchmarks see it: reading KV through block tables, decoding, and causal prompts.

Reading (`kv_read`, a checksum) and decode attention:

    t = fixed + combine (where contexts are split) + block factor x group factor x max(bytes / bandwidth, longest walk)

`block factor`: how many times as long KV takes in blocks of that size as in one piece; `group factor`: likewise for so
many query heads a KV head, against the smallest group measured. The longest walk is what one block of threads reads
alone, at the rate that one of them reaches: it rules where few of them run.

Prompts: t = fixed + 4 heads x head dim x (pairs + ramp x tokens) / peak

with pairs = tokens x cached + tokens (tokens + 1) / 2 (FlashAttention-2, Dao 2023, section 4.1); the ramp makes short
ones less efficient.
"""

from collections.abc import Sequence

import numpy as np

from kvsim.timing.families.device import Device
from kvsim.timing.families.interface import MICROSECOND, Column, Parameter, Rows, Values
from kvsim.timing.families.measured.gemm import TERA
from kvsim.timing.families.measured.lines import GB

BF16_BYTES = 2
BLOCKS = (1, 8, 16, 32, 64, 128)
GROUPS = (1, 4, 5, 7, 8, 16)
SPREAD = 3.0


def _factors(kind: str, sizes: Sequence[int], meaning: str) -> tuple[Parameter, ...]:
    return tuple(Parameter(f"{kind}_{size}_factor", "1", 1.02, 0.3, 20.0, meaning) for size in sizes)


def factor(kind: str, sizes: Column, values: Values) -> Column:
    """The factor of each size: measured ones, between them by the logarithm of the size, beyond them the nearest.

    A size of 0 (KV in one piece) has none: 1.
    """
    known = {int(name.split("_")[1]): value for name, value in values.items() if name.startswith(f"{kind}_")}
    if not known:
        return np.ones_like(sizes)
    at = sorted(known)
    found = np.interp(np.log2(np.maximum(sizes, 1)), np.log2(at), [known[size] for size in at])
    return np.where(sizes > 0, found, 1.0)


_READING = (
    Parameter("fixed_us", "us", 5.0, 0.001, 1000.0, "a kernel takes at least", spread=SPREAD),
    Parameter("bandwidth_gb_s", "GB/s", 2000.0, 1.0, 1e5, "at which KV is read", spread=SPREAD),
    Parameter("walk_gb_s", "GB/s", 20.0, 0.01, 1e4, "at which one block of threads reads alone", spread=SPREAD),
)
COMBINE = Parameter("combine_us", "us", 1.0, 0.001, 1000.0, "of adding up split contexts", spread=SPREAD)


class PagedRead:
    """Reading KV alone. Columns: `sequences`, `context` (mean), `kv_heads`, `head_dim`; optional: `block` (0 or absent:
    in one piece), `context_max`, `split_tokens` (absent: contexts are not split)."""  # fmt: skip

    name = "kv_read:bf16"
    columns: Sequence[str] = ("sequences", "context", "kv_heads", "head_dim")

    def __init__(self, blocks: Sequence[int] = BLOCKS) -> None:
        self.parameters: Sequence[Parameter] = (*_READING, *_factors("block", blocks, "as long as KV in one piece"))

    def seconds(self, values: Values, rows: Rows, device: Device) -> Column:
        """See `Family`. The device does not matter."""
        return np.asarray(MICROSECOND * values["fixed_us"] + _reading_s(values, rows, kv_bytes(rows)))

    def begin(self, rows: Rows, seconds: Column) -> dict[str, float]:
        """Where a fit begins: the best rate seen."""
        return _begin(kv_bytes(rows), rows, seconds)


class PagedAttention:
    """Decode attention. Columns: those of reading, and `heads`.

    `groups`: query heads a KV head that have a factor; the `reference` among them has 1, which is not fitted. `split`:
    some contexts are split, and combining them takes time.
    """

    name = "paged_attention:bf16"
    columns: Sequence[str] = ("sequences", "context", "heads", "kv_heads", "head_dim")

    def __init__(
        self,
        blocks: Sequence[int] = BLOCKS,
        groups: Sequence[int] = GROUPS,
        *,
        reference: int | None = None,
        split: bool = True,
    ) -> None:
        self.known = {} if reference is None else {f"group_{reference}_factor": 1.0}
        self.parameters: Sequence[Parameter] = (
            *_READING,
            *((COMBINE,) if split else ()),
            *_factors("block", blocks, "as long as KV in one piece"),
            *_factors("group", [size for size in groups if size != reference], "as long as with the smallest group"),
        )

    def seconds(self, values: Values, rows: Rows, device: Device) -> Column:
        """See `Family`. The device does not matter."""
        group = factor("group", rows["heads"] / rows["kv_heads"], {**values, **self.known})
        split = rows.get("split_tokens")
        total = MICROSECOND * values["fixed_us"] + group * _reading_s(values, rows, decode_bytes(rows))
        if split is not None and "combine_us" in values:
            total = total + MICROSECOND * values["combine_us"] * (_longest(rows) > split)
        return np.asarray(total)

    def begin(self, rows: Rows, seconds: Column) -> dict[str, float]:
        """Where a fit begins: the best rate seen."""
        return _begin(decode_bytes(rows), rows, seconds)


class CausalAttention:
    """Prompts. Columns: `tokens`, `cached`, `heads`, `head_dim` of one sequence; optional: `sequences`."""

    name = "causal_attention:bf16"
    columns: Sequence[str] = ("tokens", "cached", "heads", "head_dim")
    parameters: Sequence[Parameter] = (
        Parameter("fixed_us", "us", 10.0, 0.001, 1000.0, "a kernel takes at least", spread=SPREAD),
        Parameter("peak_tflop_s", "TFLOP/s", 300.0, 0.001, 1e5, "reached by long prompts", spread=SPREAD),
        Parameter("ramp_tokens", "tokens", 100.0, 0.01, 1e5, "context that starting up is worth", spread=SPREAD),
    )

    def seconds(self, values: Values, rows: Rows, device: Device) -> Column:
        """See `Family`. The device does not matter."""
        tokens = rows["tokens"]
        attended = pair_flops(rows) + pair_flops(rows, pairs=values["ramp_tokens"] * tokens)
        return np.asarray(MICROSECOND * values["fixed_us"] + attended / (TERA * values["peak_tflop_s"]))

    def begin(self, rows: Rows, seconds: Column) -> dict[str, float]:
        """Where a fit begins: the best rate seen."""
        return {
            "fixed_us": 0.5 * float(seconds.min()) / MICROSECOND,
            "peak_tflop_s": 1.1 * float((pair_flops(rows) / seconds).max()) / TERA,
            "ramp_tokens": 100.0,
        }


def kv_bytes(rows: Rows) -> Column:
    """Keys and values of all contexts."""
    return np.asarray(2 * BF16_BYTES * rows["kv_heads"] * rows["head_dim"] * rows["sequences"] * rows["context"])


def decode_bytes(rows: Rows) -> Column:
    """The same with queries and outputs."""
    return np.asarray(kv_bytes(rows) + 2 * BF16_BYTES * rows["heads"] * rows["head_dim"] * rows["sequences"])


def pair_flops(rows: Rows, pairs: Column | None = None) -> Column:
    """Multiplications and additions of a causal prompt, or of so many pairs of tokens."""
    if pairs is None:
        tokens = rows["tokens"]
        pairs = tokens * rows["cached"] + tokens * (tokens + 1) / 2
    return np.asarray(4 * rows["heads"] * rows["head_dim"] * pairs * rows.get("sequences", np.ones_like(pairs)))


def _longest(rows: Rows) -> Column:
    return rows.get("context_max", rows["context"])


def _reading_s(values: Values, rows: Rows, moved: Column) -> Column:
    walked = np.minimum(_longest(rows), rows.get("split_tokens", np.inf))
    walk = 2 * BF16_BYTES * rows["head_dim"] * walked / values["walk_gb_s"]
    together = np.maximum(moved / values["bandwidth_gb_s"], walk) / GB
    return np.asarray(factor("block", rows.get("block", np.zeros_like(moved)), values) * together)


def _begin(moved: Column, rows: Rows, seconds: Column) -> dict[str, float]:
    rate = float((moved / seconds).max()) / GB
    walked = 2 * BF16_BYTES * rows["head_dim"] * np.minimum(_longest(rows), rows.get("split_tokens", np.inf))
    return {
        "fixed_us": 0.5 * float(seconds.min()) / MICROSECOND,
        "bandwidth_gb_s": rate,
        "walk_gb_s": float((walked / seconds).max()) / GB,
        "combine_us": 0.1 * float(seconds.min()) / MICROSECOND,
    }
