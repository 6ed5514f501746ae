"""Two baselines that any cost model has to beat, for every family.

`datasheet`: bytes that have to move over the datasheet's bandwidth, nothing else. `linear`: one straight line in tokens
and in bytes of KV (of weights or messages, where there is no KV), fitted with relative errors to the same rows that the
model may see.
"""

import numpy as np
import numpy.typing as npt

from kvsim.timing.families import device
from kvsim.timing.families.interface import Column, Rows
from kvsim.timing.families.linear import WEIGHT_BYTES
from kvsim.timing.fitting.samples import Sample


def regressors(sample: Sample) -> tuple[Column, Column, Column]:
    """(seconds by the data sheet, tokens, bytes of KV or weights or messages) of every row."""
    chip, rows = device(sample.gpu), sample.rows
    kind, _, variant = sample.family.partition(":")
    tokens, data = _REGRESSORS[kind](rows, variant)
    rate = chip.link_bytes_per_s if kind == "all_reduce" else chip.bandwidth_bytes_per_s
    return data / rate, tokens, data


def line(tokens: Column, data: Column, seconds: Column, train: npt.NDArray[np.bool_]) -> Column:
    """Every row by the line that fits the rows of `train` best, no coefficient below 0."""
    from scipy.optimize import nnls  # late: only fits need it

    columns = np.stack([np.ones_like(tokens), tokens, data], axis=1)
    scale = columns.max(axis=0)
    scale[scale == 0] = 1.0
    if not train.any():
        return np.full(len(tokens), np.nan)
    weighted = columns[train] / scale / seconds[train][:, None]
    found, _ = nnls(weighted, np.ones(int(train.sum())))
    return np.asarray(columns @ (found / scale))


def _linear(rows: Rows, dtype: str) -> tuple[Column, Column]:
    return rows["m"], WEIGHT_BYTES[dtype] * rows["n"] * rows["k"] + 2 * rows["m"] * (rows["n"] + rows["k"])


def _decode(rows: Rows, dtype: str) -> tuple[Column, Column]:
    elements = rows.get("kv_elements", 2 * rows["head_dim"])
    return rows["sequences"], elements * rows["kv_heads"] * rows["sequences"] * rows["context"] * (
        1 if dtype == "fp8" else 2
    )


def _prefill(rows: Rows, _: str) -> tuple[Column, Column]:
    tokens = rows["sequences"] * rows["tokens"]
    kv = rows["kv_heads"] * (tokens + rows["sequences"] * rows["cached"])
    return tokens, 4 * rows["head_dim"] * (rows["heads"] * tokens + kv)


def _all_reduce(rows: Rows, _: str) -> tuple[Column, Column]:
    return rows["ranks"], 2 * (rows["ranks"] - 1) / rows["ranks"] * rows["bytes"]


def _moe(rows: Rows, dtype: str) -> tuple[Column, Column]:
    local = rows["experts"] / rows["expert_ranks"]
    touched = np.minimum(local, rows["tokens"] * rows["active"] / rows["expert_ranks"])
    width = WEIGHT_BYTES.get({"fp8_block": "fp8", "w4a16": "fp4"}.get(dtype, dtype), 2.0)
    return rows["tokens"], 3 * touched * rows["hidden"] * rows["intermediate"] / rows["tensor_ranks"] * width


_REGRESSORS = {
    "linear": _linear,
    "decode_attention": _decode,
    "prefill_attention": _prefill,
    "all_reduce": _all_reduce,
    "moe": _moe,
}
