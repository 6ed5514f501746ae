"""Two baselines that the fits have to beat.

`datasheet`: a roofline at the data sheet's rates, max(bytes / bandwidth, FLOPs / peak), kernel by kernel, nothing else.
`line`: one straight line in tokens and in bytes (of KV; of everything that moves, where there is no KV), fitted with
relative errors to the points that the family was fitted to; a step's through the other steps, which no other
prediction is allowed to see.
"""

from collections.abc import Sequence

import numpy as np

from kvsim.microbench.fit.step import matrices
from kvsim.microbench.results import Point
from kvsim.timing.families import Device
from kvsim.timing.families.interface import Column
from kvsim.timing.families.measured.attention import pair_flops
from kvsim.timing.families.measured.gemm import flops, moved_bytes

KV_BYTES_PER_ELEMENT = 4
"""Keys and values of 16 bits."""


def datasheet_s(point: Point, device: Device) -> float:
    """Seconds of one point at the rates of the data sheet; NaN for what no data sheet speaks of."""
    if point.bench == "step":
        return _step_s(point, device)
    if point.bench in ("h2d", "d2h", "duplex", "launch", "graph", "alloc", "grow", "swap_blocks", "frag"):
        return float("nan")
    return max(point.bytes / device.bandwidth_bytes_per_s, point.flops / device.bf16_flops_per_s)


def line_s(points: Sequence[Point], train: Sequence[Point]) -> Column:
    """Seconds of each point by the line through those of `train`; NaN where there are none."""
    if not train:
        return np.full(len(points), np.nan)
    seconds = np.array([point.median_s for point in train])
    return _columns(points) @ _line(_columns(train), seconds)


def line_of_others_s(points: Sequence[Point]) -> Column:
    """Seconds of each point by the line through all the others."""
    columns, seconds = _columns(points), np.array([point.median_s for point in points])
    found = np.full(len(points), np.nan)
    for at in range(len(points)) if len(points) > 1 else ():
        others = np.arange(len(points)) != at
        found[at] = columns[at] @ _line(columns[others], seconds[others])
    return found


def _line(columns: Column, seconds: Column) -> Column:
    from scipy.optimize import nnls  # late: only fits need it

    scale = np.maximum(columns.max(axis=0), 1e-30)
    found, _ = nnls(columns / scale / seconds[:, None], np.ones(len(seconds)))
    return np.asarray(found / scale)


def _columns(points: Sequence[Point]) -> Column:
    return np.array([[1.0, *_tokens_and_bytes(point)] for point in points])


def _tokens_and_bytes(point: Point) -> tuple[float, float]:
    params = point.params
    if "kv_heads" not in params:
        return float(params.get("m", 0)), float(point.bytes)
    prompt = params.get("tokens", params.get("chunk", 0))
    decoding = params.get("batch", 0)
    context = params.get("context_sum", decoding * params.get("context", 0)) + prompt + params.get("prefix", 0)
    return float(prompt + decoding), float(KV_BYTES_PER_ELEMENT * params["kv_heads"] * params["head_dim"] * context)


def _step_s(point: Point, device: Device) -> float:
    params = point.params
    rows = matrices(params)
    layer = np.maximum(moved_bytes(rows) / device.bandwidth_bytes_per_s, flops(rows) / device.bf16_flops_per_s).sum()
    kv_bytes = KV_BYTES_PER_ELEMENT * params["kv_heads"] * params["head_dim"] * params["context_sum"]
    layer += kv_bytes / device.bandwidth_bytes_per_s
    sizes = {"tokens": params["chunk"], "cached": params["prefix"], "heads": params["heads"],
             "head_dim": params["head_dim"]}  # fmt: skip
    chunk = {name: np.array([float(size)]) for name, size in sizes.items()}
    layer += float(pair_flops(chunk)[0]) / device.bf16_flops_per_s
    return float(params["layers"] * layer)
