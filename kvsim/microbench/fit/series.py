"""Points as columns: which family an operation is of, and what its columns are."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kvsim.microbench.results import Point
from kvsim.timing.families.interface import Column, Rows, Values

VMM = {"vmm_map": "map:vmm_map", "vmm_unmap": "map:vmm_unmap"}
ALTERNATIVES = {
    "gemm:bf16": ("linear:bf16",),
    "causal_attention:bf16": ("prefill_attention:packed", "prefill_attention:by_head"),
}
"""Families of published measurements that describe the same kernel."""
STAND_INS = {**ALTERNATIVES, "paged_attention:bf16": ("decode_attention:bf16",)}
"""Families that predict points of another: a calibration of published tables can be scored on a GPU's own results."""
NOT_TIMED = frozenset({"frag", "step"})
"""A replayed trace is measured in bytes; a step is predicted from the others."""


@dataclass(frozen=True, slots=True)
class Series:
    """Points of one family: its columns, the measured medians, and the points themselves."""

    family: str
    rows: Rows
    seconds: Column
    points: Sequence[Point]

    def __len__(self) -> int:
        return len(self.points)


def fitted(name: str, parameters: Mapping[str, Values]) -> str | None:
    """The family whose parameters predict points of family `name`: itself or a stand-in; None for neither."""
    return next((one for one in (name, *STAND_INS.get(name, ())) if one in parameters), None)


def family_of(point: Point) -> str | None:
    """The family whose parameters the point decides or tests; None where it has none."""
    bench, variant = point.bench, point.variant
    if bench in NOT_TIMED:
        return None
    if bench == "alloc":
        return VMM.get(variant, f"alloc:{variant}")
    if bench == "swap_blocks":
        return f"swap_blocks:{variant}_{point.params['direction']}"
    return _NAMES[bench].format(variant=variant)


def series_of(points: Sequence[Point], role: str | None = None) -> dict[str, Series]:
    """The series of each family, of points of that role alone unless it is None."""
    by_family: dict[str, list[Point]] = defaultdict(list)
    for point in points:
        name = family_of(point)
        if name is not None and (role is None or point.role == role):
            by_family[name].append(point)
    kinds = list(_COLUMNS)
    order = sorted(by_family, key=lambda name: (kinds.index(name.partition(":")[0]), name))
    return {name: _series(name, by_family[name]) for name in order}


def _series(family: str, points: Sequence[Point]) -> Series:
    columns = [_COLUMNS[family.partition(":")[0]](point) for point in points]
    # A size that some points of a family state and others do not would be no column.
    shared = [name for name in columns[0] if all(name in one for one in columns)]
    rows = {name: np.array([one[name] for one in columns], dtype=np.float64) for name in shared}
    return Series(family, rows, np.array([point.median_s for point in points]), points)


def decode_columns(params: Mapping[str, float]) -> dict[str, float]:
    """Columns of decode attention, or of reading alone, from the sizes of a point."""
    batch = params["batch"]
    columns = {
        "sequences": batch,
        "context": params.get("context_sum", batch * params["context"]) / batch,
        "context_max": params.get("context_max", params["context"]),
        "kv_heads": params["kv_heads"],
        "head_dim": params["head_dim"],
        "block": params["block"],
    }
    if "heads" in params:
        columns["heads"] = params["heads"]
    return columns


def prefill_columns(params: Mapping[str, float]) -> dict[str, float]:
    """Columns of a causal prompt from the sizes of a point."""
    return {
        "sequences": 1,
        "tokens": params["tokens"],
        "cached": params["prefix"],
        "heads": params["heads"],
        "kv_heads": params["kv_heads"],
        "head_dim": params["head_dim"],
    }


def _sizes(*names: str) -> Callable[[Point], dict[str, float]]:
    return lambda point: {name: point.params[name] for name in names}


_NAMES = {
    "hbm": "hbm:{variant}",
    "gemm": "gemm:{variant}",
    "kv_read": "kv_read:bf16",
    "decode_attn": "paged_attention:bf16",
    "prefill_attn": "causal_attention:bf16",
    "launch": "launch:stream",
    "graph": "launch:graph",
    "h2d": "copy:h2d_{variant}",
    "d2h": "copy:d2h_{variant}",
    "duplex": "copy:both_{variant}",
    "grow": "grow:{variant}",
}
_COLUMNS: dict[str, Callable[[Point], dict[str, float]]] = {
    # What a stream moves is what the point counts: a copy reads and writes each byte.
    "hbm": lambda point: {"bytes": point.bytes},
    "gemm": _sizes("m", "n", "k"),
    "kv_read": lambda point: decode_columns(point.params),
    "paged_attention": lambda point: decode_columns(point.params),
    "causal_attention": lambda point: prefill_columns(point.params),
    "launch": _sizes("kernels"),
    "copy": _sizes("bytes"),
    "grow": _sizes("bytes"),
    "alloc": _sizes("bytes"),
    "map": _sizes("chunks"),
    "swap_blocks": lambda point: {
        "blocks": point.params["blocks"],
        "bytes": point.params["blocks"] * point.params["block_bytes"],
    },
}
