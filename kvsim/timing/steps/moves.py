"""What moving KV takes where this GPU has measured it, piece by piece; else as the data sheet says."""

from collections.abc import Mapping
from dataclasses import replace

from kvsim.request import PS_PER_S
from kvsim.timing.families.device import MIB
from kvsim.timing.families.interface import MICROSECOND, Values
from kvsim.timing.families.measured.lines import GB
from kvsim.timing.moves import Moves

CHUNK_BYTES = 2 * MIB
"""The physical memory that a mapping benchmark maps at a time: CUDA's granularity. Smaller pages were not measured."""
SWAPS = ("swap_blocks:batch", "swap_blocks:loop")
"""How engines copy blocks to the host and back: batched calls (vLLM since CUDA 12.8), else a call for each block."""


def measured_moves(
    base: Moves,
    parameters: Mapping[str, Values],
    *,
    kv_bytes: float,
    tensors: int,
    block_size: int | None,
    page_bytes: int | None,
) -> tuple[Moves, list[str]]:
    """(`base` with what `parameters` know better, which pieces those are).

    `kv_bytes`: of a slot, on one GPU, in `tensors` tensors of which each is copied by itself. `block_size`: slots that
    are swapped together; None: whole regions, whose few calls count nothing. `page_bytes`: what is mapped at a time.
    """
    known = []
    copy = parameters.get("hbm:copy")
    if copy is not None:
        known.append("copies")
        base = replace(base, copied_ps=round(PS_PER_S * 2 * kv_bytes / (GB * copy["rate_gb_s"])))
    mapping = parameters.get("map:vmm_map")
    if mapping is not None and page_bytes == CHUNK_BYTES:
        known.append("mapping")
        base = replace(base, mapped_ps=round(PS_PER_S * MICROSECOND * mapping["chunk_us"]))
    for name in SWAPS:
        ways = [parameters[f"{name}_{way}"] for way in ("out", "in") if f"{name}_{way}" in parameters]
        if ways:
            known.append("swaps")
            seconds = sum(_swapped_s(values, kv_bytes, tensors, block_size) for values in ways) / len(ways)
            base = replace(base, swapped_ps=round(PS_PER_S * seconds))
            break
    return base, known


def _swapped_s(values: Values, kv_bytes: float, tensors: int, block_size: int | None) -> float:
    calls = 0.0 if block_size is None else tensors / block_size
    return MICROSECOND * values["block_us"] * calls + kv_bytes / (GB * values["rate_gb_s"])
