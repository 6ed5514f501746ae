"""What a kernel family needs to know of a chip: rates of its data sheet, its units, its last-level cache."""

import csv
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from kvsim.catalog.gpus import MAKER_WORDS, Gpu
from kvsim.catalog.gpus import gpu as gpu_of_the_catalogue
from kvsim.catalog.names import key
from kvsim.errors import InputError
from kvsim.units import GIB

MIB = GIB // 1024
DEFAULT_UNITS, DEFAULT_CACHE_BYTES = 108, 40 * MIB
"""Of a chip without a row in `data/devices.csv`: those of the A100, the middle of the table."""

_REMARKS = re.compile(r"\(.*?\)|\*\s*\d+|\b\d+x\b|\bgpus?\b", re.IGNORECASE)
_SIZE = re.compile(r"\b\d+\s*gb\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One chip. Rates are those of the data sheet: bytes per second, dense FLOP per second.

    `units` are streaming multiprocessors (compute units), each runs one block of work at a time. `link_bytes_per_s` is
    what one chip sends to its neighbours, one way; chips without a link of their own talk over the host's (`switched`
    False). `arch` is the generation, by which an unseen chip finds its nearest relatives.
    """

    name: str
    arch: str
    bandwidth_bytes_per_s: float
    bf16_flops_per_s: float
    fp8_flops_per_s: float
    fp4_flops_per_s: float
    units: int
    cache_bytes: int
    link_bytes_per_s: float
    switched: bool

    def same_chip(self, other: "Device") -> bool:
        """The same die, with other memory beside it or under another name."""
        return (self.arch, self.units, self.cache_bytes) == (other.arch, other.units, other.cache_bytes)

    def flops_per_s(self, dtype: str) -> float:
        """Dense peak for operands of that type; weights of 4 bits alone (`int4`) are unpacked to 16 first."""
        return {"fp8": self.fp8_flops_per_s, "fp4": self.fp4_flops_per_s}.get(dtype, self.bf16_flops_per_s)


@cache
def device(name: str) -> Device:
    """The device that sources call so: remarks in brackets, "GPU" and counts ("* 4") do not matter.

    Raises InputError where neither the catalogue nor `data/devices.csv` has it.
    """
    bare = _REMARKS.sub(" ", name).strip()
    for spelling in dict.fromkeys((name, bare, _SIZE.sub(" ", bare).strip())):
        try:
            return of_gpu(gpu_of_the_catalogue(spelling))
        except InputError:
            row = _own().get(key(spelling, MAKER_WORDS))
            if row is not None:
                return _of_row(row)
    raise InputError(f"GPU {name!r}: no data sheet is known; `kvsim gpus` lists those that are")


def of_gpu(gpu: Gpu) -> Device:
    """The device that a GPU of the catalogue is. A chip without units for a narrow type uses the next wider one's."""
    row = _rows().get(gpu.name)
    fp8 = gpu.fp8_flops_per_s or gpu.bf16_flops_per_s
    switched = gpu.gpu_link_bytes_per_s > 0
    return Device(
        name=gpu.name,
        arch=gpu.arch,
        bandwidth_bytes_per_s=gpu.bandwidth_bytes_per_s,
        bf16_flops_per_s=gpu.bf16_flops_per_s,
        fp8_flops_per_s=fp8,
        fp4_flops_per_s=gpu.fp4_flops_per_s or fp8,
        units=int(row["streaming_multiprocessors"]) if row else DEFAULT_UNITS,
        cache_bytes=int(row["l2_cache_mib"]) * MIB if row else DEFAULT_CACHE_BYTES,
        link_bytes_per_s=gpu.gpu_link_bytes_per_s / 2 if switched else gpu.host_link_bytes_per_s,
        switched=switched,
    )


def _of_row(row: dict[str, str]) -> Device:
    bf16 = float(row["bf16_dense_tflops"]) * 1e12
    fp8 = float(row["fp8_dense_tflops"] or 0) * 1e12 or bf16
    return Device(
        name=row["name"],
        arch="Ada" if row["fp8_dense_tflops"] else "Ampere",
        bandwidth_bytes_per_s=float(row["bandwidth_gb_s"]) * 1e9,
        bf16_flops_per_s=bf16,
        fp8_flops_per_s=fp8,
        fp4_flops_per_s=fp8,
        units=int(row["streaming_multiprocessors"]),
        cache_bytes=int(row["l2_cache_mib"]) * MIB,
        link_bytes_per_s=float(row["link_gb_s_one_way"]) * 1e9,
        switched=False,
    )


@cache
def _rows() -> dict[str, dict[str, str]]:
    text = files("kvsim.timing").joinpath("data/devices.csv").read_text("utf-8")
    return {row["name"]: row for row in csv.DictReader(text.splitlines())}


@cache
def _own() -> dict[str, dict[str, str]]:
    """Cards that measurements name and the catalogue does not have: those with a bandwidth of their own."""
    own = [row for row in _rows().values() if row["bandwidth_gb_s"]]
    return {key(name, MAKER_WORDS): row for row in own for name in (row["name"], *row["aliases"].split(";")) if name}
