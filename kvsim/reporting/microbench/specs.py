"""What each figure shows: which families, over which size, and what a curve of it is called."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kvsim.units import GIB

MOST_CURVES = 8
"""Colours that the eye tells apart; the residuals are of all points."""

Sizes = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Spec:
    """One figure. `label` names the curve that a point lies on, from its family and its sizes."""

    stem: str
    title: str
    kinds: tuple[str, ...]
    column: str
    axis: str
    label: Callable[[str, Sizes], str]
    same: tuple[str, ...] = ()
    """Columns of which curves show the values with the most points; residuals are of all."""
    factors: str | None = None
    """Beginning of the parameters that get a panel of their own."""


def _variant(family: str, sizes: Sizes) -> str:
    return family.partition(":")[2].replace("_", " ")


def _matrix(family: str, sizes: Sizes) -> str:
    return f"{sizes['k']:.0f} to {sizes['n']:.0f}"


def _read(family: str, sizes: Sizes) -> str:
    return f"batch {sizes['sequences']:.0f}, {_layout(sizes)}"


def _decode(family: str, sizes: Sizes) -> str:
    return f"batch {sizes['sequences']:.0f}, {sizes['heads']:.0f}/{sizes['kv_heads']:.0f} heads, {_layout(sizes)}"


def _prompt(family: str, sizes: Sizes) -> str:
    return f"after {sizes['cached']:.0f}, {sizes['heads']:.0f} heads"


def _swap(family: str, sizes: Sizes) -> str:
    return f"{_variant(family, sizes)}, {sizes['blocks']:.0f} blocks"


def _layout(sizes: Sizes) -> str:
    return f"block {sizes['block']:.0f}" if sizes.get("block") else "in one piece"


SPECS = (
    Spec("hbm", "Memory bandwidth", ("hbm",), "bytes", "bytes moved", _variant),
    Spec("gemm", "Linear layers", ("gemm", "linear"), "m", "tokens", _matrix),
    Spec("kv_read", "Reading KV through block tables", ("kv_read",), "context", "context of each sequence, tokens",
         _read, same=("sequences",), factors="block"),
    Spec("decode_attention", "Decode attention", ("paged_attention",), "context", "mean context, tokens", _decode,
         same=("heads", "kv_heads", "block"), factors="block"),
    Spec("prefill_attention", "Prefill attention", ("causal_attention", "prefill_attention"), "tokens",
         "tokens of the chunk", _prompt),
    Spec("launches", "Launching kernels", ("launch",), "kernels", "empty kernels", _variant),
    Spec("copies", "Copies between host and GPU", ("copy",), "bytes", "bytes", _variant),
    Spec("swap_blocks", "Swapping blocks", ("swap_blocks",), "bytes", "bytes of all blocks", _swap,
         same=("blocks",)),
    Spec("allocation", "Allocating memory", ("alloc",), "bytes", "bytes", _variant),
    Spec("mapping", "Mapping physical memory", ("map",), "chunks", "chunks", _variant),
    Spec("growth", "Growing by allocating, copying and freeing", ("grow",), "bytes", "bytes before", _variant),
    Spec("steps", "Steps against the sum of their kernels", ("step",), "given", "sum of the kernels", _variant),
)  # fmt: skip

POWERS_OF_TWO = frozenset({"m", "context", "tokens", "bytes", "chunks"})
"""Columns whose axis counts in powers of two."""


SIZE_UNITS = (("GiB", GIB), ("MiB", GIB >> 10), ("KiB", GIB >> 20), ("B", 1))
TIME_UNITS = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9))


def size_of(value: float) -> str:
    """A number of bytes as a label."""
    return _in_units(value, SIZE_UNITS)


def time_of(seconds: float) -> str:
    """A time as a label."""
    return _in_units(seconds, TIME_UNITS)


def _in_units(value: float, units: Sequence[tuple[str, float]]) -> str:
    # A power of ten is a hair below the unit that it is meant to be.
    name, unit = next((one for one in units if value >= 0.999 * one[1]), units[-1])
    return f"{value / unit:.3g} {name}"
