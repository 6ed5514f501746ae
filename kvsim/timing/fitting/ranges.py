"""Where a run may leave what a GPU's own microbenchmarks measured: there a fit extrapolates, and should say so."""

from collections.abc import Iterator
from dataclasses import dataclass

from kvsim.timing.fitting.calibration import Calibration, Entry

LINEAR = ("gemm:bf16", "linear:bf16")
DECODE = ("paged_attention:bf16",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The most that a run asks of its GPU: sequences and tokens of a step, tokens of a context; and the shape of its
    attention: query heads a KV head, slots of a block (None: KV in one piece)."""  # fmt: skip

    sequences: int
    tokens: int
    context: int
    group: float
    block: int | None


def beyond(calibration: Calibration, gpu: str, asked: Asked) -> Iterator[str]:
    """A sentence for each size that lies outside of what the calibration of this GPU was fitted to."""
    linear, decode = _entry(calibration, gpu, LINEAR), _entry(calibration, gpu, DECODE)
    if linear is not None:
        yield from _above(linear, "m", asked.tokens, "linear layers", "tokens a step")
    if decode is not None:
        yield from _above(decode, "sequences", asked.sequences, "decodes", "sequences a step")
        # A run's batch may be uneven: its longest context is what the longest of a benchmark's is compared with.
        yield from _above(decode, "context_max", asked.context, "decodes", "tokens of context")
        yield from _outside(decode, "group", asked.group, "query heads a KV head")
        if asked.block is not None:
            yield from _outside(decode, "block", asked.block, "slots a block")


def _entry(calibration: Calibration, gpu: str, names: tuple[str, ...]) -> Entry | None:
    return next((calibration.entries[gpu, name] for name in names if (gpu, name) in calibration.entries), None)


def _above(entry: Entry, column: str, most: int, what: str, unit: str) -> Iterator[str]:
    fitted = entry.ranges.get(column)
    if fitted is not None and most > fitted[1]:
        yield (
            f"On this GPU {what} were measured up to {fitted[1]:,.0f} {unit}; this run may come to {most:,}, where "
            f"times are extrapolated."
        )


def _outside(entry: Entry, kind: str, size: float, unit: str) -> Iterator[str]:
    """A factor is measured for some sizes; beyond the least and the largest, the nearest one's is taken."""
    known = sorted(int(name.split("_")[1]) for name in entry.values if name.startswith(f"{kind}_"))
    if known and not known[0] <= size <= known[-1]:
        yield (
            f"On this GPU decode attention was measured with {known[0]} to {known[-1]} {unit}; this run has {size:g}, "
            f"and takes those of the nearest."
        )
