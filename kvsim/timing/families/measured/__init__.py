"""Families that a GPU's own microbenchmarks decide, in absolute rates: no data sheet is needed to fit them."""

from kvsim.timing.families.interface import Family
from kvsim.timing.families.measured.attention import CausalAttention, PagedAttention, PagedRead
from kvsim.timing.families.measured.gemm import Gemm
from kvsim.timing.families.measured.lines import KINDS, Line

__all__ = [
    "STANDS_FOR",
    "CausalAttention",
    "Gemm",
    "Line",
    "PagedAttention",
    "PagedRead",
    "measured_family",
    "stands_for",
]

STANDS_FOR = {
    "linear:bf16": "gemm:bf16",
    "decode_attention:bf16": "paged_attention:bf16",
    "prefill_attention:by_head": "causal_attention:bf16",
    "prefill_attention:packed": "causal_attention:bf16",
}
"""Which of them serves for a family of published measurements, on the GPU that it was measured on."""
LATENT = frozenset(name for name in STANDS_FOR if "attention" in name)
"""Those that attend to keys and values: attention to a latent (MLA) is another kernel, which they do not measure."""

_BY_NAME: dict[str, Family] = {
    one.name: one for one in (Gemm(), PagedRead(), PagedAttention(), CausalAttention())
}  # fmt: skip


def stands_for(name: str, *, latent: bool) -> str | None:
    """The family that serves for `name` where the GPU has measured it; None where none does."""
    return None if latent and name in LATENT else STANDS_FOR.get(name)


def measured_family(name: str) -> Family | None:
    """The family of that name, such as `gemm:bf16` or `copy:h2d_pinned`; None for no such family."""
    found = _BY_NAME.get(name)
    if found is None and name.partition(":")[0] in KINDS:
        return Line(name)
    return found
