"""Attention as a GPU's own microbenchmarks see it: reading KV through block tables, decoding, and causal prompts.

Reading (`kv_read`, a checksum) and decode attention:

    t = fixed + combine (where contexts are split) + block factor x group factor x max(bytes / bandwidth, longest walk)

`block factor`: how many times as long KV takes in blocks of that size as in one piece; `group factor`: likewise for so
many query heads a KV head, against the smallest group measured. The longest walk is what one block of threads reads
alone, at the rate that one of them reaches: it rules where few of them run. Contexts are split over blocks of threads
by the rules of the benchmarks' kernels (`splits_for` in microbench/cuda/bench/decode.h, and kv_read.h), which the
numbers below repeat: so many blocks of threads a multiprocessor, none of fewer tokens, no more than so many.

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
WALKS = (3.0, 30.0, 300.0)
"""As many blocks of threads together may reach the bandwidth: where fits of a walk begin. A walk that is much too fast
or too slow hides, or hides everything else, and no step of a fit leads away from there."""

READ_CTAS, READ_TOKENS = 8, 64
"""Of `kv_read`: blocks of threads a multiprocessor, and the fewest tokens that one of them reads."""
DECODE_CTAS, DECODE_TOKENS, DECODE_SPLITS = 3, 256, 64
"""Of decode attention, likewise, and into how many parts a context is split at most."""


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


class PagedRead:
    """Reading KV alone. Columns: `sequences`, `context` (mean), `kv_heads`, `head_dim`.

    Optional: `block` (0 or absent: in one piece), `context_max`, `kv_elements` (what a token of one KV head holds,
    unless 2 x `head_dim`).
    """

    name = "kv_read:bf16"
    columns: Sequence[str] = ("sequences", "context", "kv_heads", "head_dim")

    def __init__(self, blocks: Sequence[int] = BLOCKS) -> None:
        self.parameters: Sequence[Parameter] = (*_READING, *_factors("block", blocks, "as long as KV in one piece"))

    def seconds(self, values: Values, rows: Rows, device: Device) -> Column:
        """See `Family`."""
        wanted = np.floor(READ_CTAS * device.units / rows["sequences"])
        splits = np.maximum(1, np.minimum(wanted, np.floor(_longest(rows) / READ_TOKENS)))
        walk = kv_token_bytes(rows) * _longest(rows) / splits
        return np.asarray(MICROSECOND * values["fixed_us"] + _reading_s(values, rows, walk))

    def begins(self, rows: Rows, seconds: Column) -> Sequence[dict[str, float]]:
        """Where a fit begins: the best rate seen."""
        return _begins(rows, seconds)


class PagedAttention:
    """Decode attention. Columns: those of reading, and `heads`.

    `groups`: query heads a KV head that have a factor; the `reference` among them has 1, which is not fitted.
    """

    name = "paged_attention:bf16"
    columns: Sequence[str] = ("sequences", "context", "heads", "kv_heads", "head_dim")

    def __init__(
        self, blocks: Sequence[int] = BLOCKS, groups: Sequence[int] = GROUPS, *, reference: int | None = None
    ) -> None:
        self.known = {} if reference is None else {f"group_{reference}_factor": 1.0}
        self.parameters: Sequence[Parameter] = (
            *_READING,
            Parameter("combine_us", "us", 1.0, 0.001, 1000.0, "of adding up split contexts", spread=SPREAD),
            *_factors("block", blocks, "as long as KV in one piece"),
            *_factors("group", [size for size in groups if size != reference], "as long as with the smallest group"),
        )

    def seconds(self, values: Values, rows: Rows, device: Device) -> Column:
        """See `Family`."""
        group = factor("group", rows["heads"] / rows["kv_heads"], {**values, **self.known})
        wanted = np.ceil(DECODE_CTAS * device.units / (rows["kv_heads"] * rows["sequences"]))
        most = np.maximum(1, np.floor(_longest(rows) / DECODE_TOKENS))
        splits = np.maximum(1, np.minimum(np.minimum(wanted, most), DECODE_SPLITS))
        walk = kv_token_bytes(rows) / rows["kv_heads"] * _longest(rows) / splits
        fixed_us = values["fixed_us"] + values["combine_us"] * (splits > 1)
        return np.asarray(MICROSECOND * fixed_us + group * _reading_s(values, rows, walk))

    def begins(self, rows: Rows, seconds: Column) -> Sequence[dict[str, float]]:
        """Where a fit begins: the best rate seen."""
        return [{**begin, "combine_us": 0.1 * float(seconds.min()) / MICROSECOND} for begin in _begins(rows, seconds)]


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

    def begins(self, rows: Rows, seconds: Column) -> Sequence[dict[str, float]]:
        """Where a fit begins: the best rate seen."""
        begin = {
            "fixed_us": 0.5 * float(seconds.min()) / MICROSECOND,
            "peak_tflop_s": 1.1 * float((pair_flops(rows) / seconds).max()) / TERA,
            "ramp_tokens": 100.0,
        }
        return [begin]


def kv_token_bytes(rows: Rows) -> Column:
    """Keys and values of one token, of all KV heads."""
    return np.asarray(BF16_BYTES * rows.get("kv_elements", 2 * rows["head_dim"]) * rows["kv_heads"])


def pair_flops(rows: Rows, pairs: Column | None = None) -> Column:
    """Multiplications and additions of a causal prompt, or of so many pairs of tokens."""
    if pairs is None:
        tokens = rows["tokens"]
        pairs = tokens * rows["cached"] + tokens * (tokens + 1) / 2
    return np.asarray(4 * rows["heads"] * rows["head_dim"] * pairs * rows.get("sequences", np.ones_like(pairs)))


def _longest(rows: Rows) -> Column:
    return rows.get("context_max", rows["context"])


def _reading_s(values: Values, rows: Rows, walk: Column) -> Column:
    moved = kv_token_bytes(rows) * rows["sequences"] * rows["context"]
    together = np.maximum(moved / values["bandwidth_gb_s"], walk / values["walk_gb_s"]) / GB
    return np.asarray(factor("block", rows.get("block", np.zeros_like(moved)), values) * together)


def _begins(rows: Rows, seconds: Column) -> list[dict[str, float]]:
    moved = kv_token_bytes(rows) * rows["sequences"] * rows["context"]
    rate = float((moved / seconds).max()) / GB
    fixed_us = 0.5 * float(seconds.min()) / MICROSECOND
    return [{"fixed_us": fixed_us, "bandwidth_gb_s": rate, "walk_gb_s": rate / walks} for walks in WALKS]
