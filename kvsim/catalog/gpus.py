"""Accelerators as data: the memory a process is given, its speed, what the chip computes and costs."""

from dataclasses import dataclass
from functools import cache

from kvsim.catalog.names import index, read_table, spellings, unknown
from kvsim.catalog.weights import dtype_bits
from kvsim.units import GIB

MAKER_WORDS = frozenset({"nvidia", "geforce", "amd", "instinct", "tesla", "gpu"})
"""Words that drivers and shops put before the name of a chip."""


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """One accelerator as an engine sees it.

    `memory_bytes` is what the driver gives a process (the total that `gpu_memory_utilization` is a share of),
    which is less than the `memory_gb_nominal` of its name; `memory_known` is False where nobody has reported
    it and the nominal size stands in. Bandwidth and links are bytes per second (host link one way, link
    between GPUs both ways together, 0 for none). FLOP/s are dense peaks of the data sheet; None where the
    chip has no such units. Prices are a rough range of US dollars per hour, None where not known.
    """

    name: str
    aliases: tuple[str, ...] = ()
    vendor: str = ""
    arch: str = ""
    memory_gb_nominal: int
    memory_bytes: int
    memory_known: bool = True
    bandwidth_bytes_per_s: int
    bf16_flops_per_s: float
    fp8_flops_per_s: float | None = None
    fp4_flops_per_s: float | None = None
    host_link_bytes_per_s: int = 0
    gpu_link_bytes_per_s: int = 0
    usd_per_hour_low: float | None = None
    usd_per_hour_high: float | None = None
    source_memory: str = ""
    source_performance: str = ""
    source_price: str = ""

    def flops_per_s(self, dtype: str = "bf16") -> float:
        """Dense peak of multiply-adds on weights of that type, in FLOP/s (a multiply-add is two).

        fp16 runs at the bf16 rate. A chip without fp8 units runs fp8 weights at the bf16 rate, and int8 and
        int4 weights always do: engines unpack them to 16 bits before they multiply. fp32 raises ValueError:
        the catalogue has no rate for it.
        """
        dtype_bits(dtype)
        if dtype == "fp32":
            raise ValueError(f"dtype: no fp32 rate is known for {self.name}; use bf16, fp16, fp8, int8 or int4")
        if dtype == "fp8" and self.fp8_flops_per_s is not None:
            return self.fp8_flops_per_s
        return self.bf16_flops_per_s


def gpu(name: str) -> Gpu:
    """Return the GPU of that name, as users ("H100") and drivers ("NVIDIA H100 80GB HBM3") write it.

    Raises InputError with the closest names.
    """
    names = _index()
    for spelling in spellings(name, MAKER_WORDS):
        if spelling in names:
            return _build(names[spelling])
    raise unknown("GPU", name, (row["name"] for row in _rows()), "`kvsim gpus` lists all")


def gpus() -> list[Gpu]:
    """Return every GPU of the catalogue, in the order of its data file."""
    return [_build(row) for row in range(len(_rows()))]


@cache
def _rows() -> list[dict[str, str]]:
    return read_table("gpus.csv")


@cache
def _index() -> dict[str, int]:
    return index(((i, (row["name"], *_aliases(row))) for i, row in enumerate(_rows())), MAKER_WORDS)


def _aliases(row: dict[str, str]) -> tuple[str, ...]:
    return tuple(alias for alias in row["aliases"].split(";") if alias)


@cache
def _build(row_number: int) -> Gpu:
    row = _rows()[row_number]
    memory = _memory_bytes(row)
    nominal = int(row["memory_gb_nominal"])
    return Gpu(
        name=row["name"],
        aliases=_aliases(row),
        vendor=row["vendor"],
        arch=row["arch"],
        memory_gb_nominal=nominal,
        memory_bytes=memory if memory is not None else nominal * 10**9,
        memory_known=memory is not None,
        bandwidth_bytes_per_s=int(row["hbm_bandwidth_gb_s"]) * 10**9,
        bf16_flops_per_s=float(row["bf16_dense_tflops"]) * 1e12,
        fp8_flops_per_s=_scaled(row["fp8_dense_tflops"], 1e12),
        fp4_flops_per_s=_scaled(row["fp4_dense_tflops"], 1e12),
        host_link_bytes_per_s=int(row["host_link_gb_s_one_way"]) * 10**9,
        gpu_link_bytes_per_s=int(row["gpu_link_gb_s_both_ways"]) * 10**9,
        usd_per_hour_low=_scaled(row["usd_per_hour_low"], 1.0),
        usd_per_hour_high=_scaled(row["usd_per_hour_high"], 1.0),
        source_memory=row["source_memory"],
        source_performance=row["source_performance"],
        source_price=row["source_price"],
    )


def _memory_bytes(row: dict[str, str]) -> int | None:
    if row["memory_bytes_cuda_total"]:
        return int(row["memory_bytes_cuda_total"])
    if row["memory_gib_torch_total"]:
        return round(float(row["memory_gib_torch_total"]) * GIB)
    return None


def _scaled(text: str, factor: float) -> float | None:
    return float(text) * factor if text else None
