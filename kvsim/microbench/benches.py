"""The benchmarks: their variants, and the sizes that a point of each states."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kvsim.errors import InputError
from kvsim.microbench.values import text, whole

SPREADS = ("even", "lognormal")
DIRECTIONS = ("out", "in")
FROM_ZERO = frozenset({"block", "prefix", "chunk", "batch", "context", "context_sum", "context_max"})
"""Sizes that may be 0: KV in one piece, no prefix, no prompt in a step, nobody that decodes."""


@dataclass(frozen=True, slots=True)
class Bench:
    """One benchmark. `sizes` are whole numbers; `computes`: its output can be checked, so it must have been."""

    variants: tuple[str, ...]
    sizes: tuple[str, ...]
    choices: Mapping[str, tuple[str, ...]]
    computes: bool = False


_HEADS = ("heads", "kv_heads", "head_dim")
_CONTEXTS = ("context_sum", "context_max")
BENCHES: Mapping[str, Bench] = {
    "hbm": Bench(("read", "write", "copy"), ("bytes",), {}),
    "gemm": Bench(("bf16",), ("m", "n", "k"), {}, computes=True),
    "kv_read": Bench(("paged", "contiguous"), ("batch", "context", "kv_heads", "head_dim", "block"), {}, computes=True),
    "decode_attn": Bench(
        ("paged", "contiguous"), ("batch", "context", *_HEADS, "block", *_CONTEXTS), {"spread": SPREADS}, computes=True
    ),
    "prefill_attn": Bench(("causal",), ("tokens", "prefix", *_HEADS), {}, computes=True),
    "launch": Bench(("empty",), ("kernels",), {}),
    "graph": Bench(("empty",), ("kernels",), {}),
    "h2d": Bench(("pinned", "pageable"), ("bytes",), {}),
    "d2h": Bench(("pinned", "pageable"), ("bytes",), {}),
    "duplex": Bench(("pinned",), ("bytes",), {}),
    "swap_blocks": Bench(
        ("loop", "batch", "gather", "mapped"), ("blocks", "block_bytes"), {"direction": DIRECTIONS}
    ),
    "alloc": Bench(("malloc", "free", "pool_warm", "pool_cold", "vmm_map", "vmm_unmap"), ("bytes", "chunks"), {}),
    "grow": Bench(("alloc_copy_free",), ("bytes", "new_bytes"), {}),
    "frag": Bench((), ("operations",), {}),
    "step": Bench(
        ("graph", "eager"),
        ("layers", "batch", "context", *_CONTEXTS, "chunk", "prefix", "hidden", "intermediate", *_HEADS, "block"),
        {"spread": SPREADS},
        computes=True,
    ),
}  # fmt: skip
"""By name; `frag` has a variant for each trace that it replays."""


def check_params(bench: str, variant: str, params: Mapping[str, Any]) -> None:
    """Raises InputError for a benchmark, variant or size that is none."""
    known = BENCHES.get(bench)
    if known is None:
        raise InputError(f"bench is {bench!r}; it must be one of {', '.join(BENCHES)}")
    if known.variants and variant not in known.variants:
        raise InputError(f"variant is {variant!r}; of {bench} it must be one of {', '.join(known.variants)}")
    try:
        for name in known.sizes:
            whole(params, name, least=0 if name in FROM_ZERO else 1)
        for name, choices in known.choices.items():
            text(params, name, choices)
    except InputError as error:
        raise InputError(f"params of {bench}: {error}") from None
    if {"heads", "kv_heads"} <= params.keys() and params["heads"] % params["kv_heads"]:
        raise InputError(
            f"params of {bench}: heads is {params['heads']}; it must be a multiple of kv_heads, {params['kv_heads']}"
        )
