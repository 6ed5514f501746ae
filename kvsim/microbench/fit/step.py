"""A step as the sum of its kernels: what the fitted families say of the composite `step` benchmark.

A layer multiplies its tokens with four matrices (queries, keys and values; output; gate and up; down), those that
decode attend to their contexts, and a prompt's chunk to itself and what is before it. Two norms and the gate between
up and down read and write activations at the rate of a copy. Layers come one after the other.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from kvsim.microbench.fit.series import decode_columns, fitted, prefill_columns
from kvsim.microbench.results import Point
from kvsim.timing.families import Device, family
from kvsim.timing.families.interface import Column, Values
from kvsim.timing.families.measured.gemm import BF16_BYTES

COPY = "hbm:copy"


def kernels_s(points: Sequence[Point], parameters: Mapping[str, Values], device: Device) -> Column | None:
    """Seconds of all kernels of each step; None where a family that a step needs has no parameters."""
    linear, decode, prompt = (
        fitted(name, parameters) for name in ("gemm:bf16", "paged_attention:bf16", "causal_attention:bf16")
    )
    decodes = any(point.params["batch"] for point in points)
    prompts = any(point.params["chunk"] for point in points)
    if linear is None or (decodes and decode is None) or (prompts and prompt is None):
        return None
    total = np.zeros(len(points))
    for at, point in enumerate(points):
        params = point.params
        layer = float(family(linear).seconds(parameters[linear], matrices(params), device).sum())
        if params["batch"] and decode is not None:
            layer += _one(decode, parameters, decode_columns(params), device)
        if params["chunk"] and prompt is not None:
            layer += _one(prompt, parameters, prefill_columns({**params, "tokens": params["chunk"]}), device)
        if COPY in parameters:
            layer += float(family(COPY).seconds(parameters[COPY], _activations(params), device).sum())
        total[at] = params["layers"] * layer
    return total


def _activations(params: Mapping[str, float]) -> dict[str, Column]:
    """Bytes that the norms and the gate move: a row read and one written, twice; two halves read, one written."""
    tokens = BF16_BYTES * (params["batch"] + params["chunk"])
    norm, gate = 2 * tokens * params["hidden"], 3 * tokens * params["intermediate"]
    return {"bytes": np.array([norm, norm, gate], dtype=np.float64)}


def matrices(params: Mapping[str, float]) -> dict[str, Column]:
    """The linear layers of one layer of a step, as columns: weights are never in the cache."""
    hidden, wide, inner = params["hidden"], params["intermediate"], params["heads"] * params["head_dim"]
    outputs = inner + 2 * params["kv_heads"] * params["head_dim"]
    shapes = ((outputs, hidden), (hidden, inner), (2 * wide, hidden), (hidden, wide))
    ones = np.ones(len(shapes))
    n, k = (np.array(sizes, dtype=np.float64) for sizes in zip(*shapes, strict=True))
    return {"m": ones * (params["batch"] + params["chunk"]), "n": n, "k": k, "cold": ones}


def _one(name: str, parameters: Mapping[str, Values], columns: Mapping[str, float], device: Device) -> float:
    rows = {key: np.array([float(value)]) for key, value in {**columns, "cold": 1.0}.items()}
    return float(family(name).seconds(parameters[name], rows, device)[0])
