"""`kvsim gpus`: the GPUs that kvsim knows, or one of them in full."""

import argparse
from typing import TYPE_CHECKING, Any

from kvsim.cli.options import add_output_options

if TYPE_CHECKING:
    from kvsim.catalog.gpus import Gpu

BYTES_PER_GIB = 2**30
PER_GIGA = 1e9
PER_TERA = 1e12


def add(subparsers: Any) -> None:
    """Say what the verb takes."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "gpus",
        help="list the GPUs, or show one",
        description="List the GPUs of the catalogue with memory, bandwidth and dense bf16 peak, or show one.",
        allow_abbrev=False,
    )
    parser.add_argument("name", metavar="NAME", nargs="?", help="a name as users and logs write it")
    add_output_options(parser, "print JSON, and nothing else")
    parser.set_defaults(execute=execute)


def execute(args: argparse.Namespace) -> int:
    """List all, or show the one that was named."""
    from dataclasses import asdict

    from kvsim.catalog.gpus import gpu, gpus
    from kvsim.cli.show import Justify, print_facts, print_json, print_rows

    if args.name is not None:
        one = gpu(args.name)
        print_json(asdict(one)) if args.json else print_facts(args, _facts(one))
        return 0
    known = gpus()
    if args.json:
        print_json([asdict(one) for one in known])
        return 0
    rows = [
        [
            one.name,
            one.arch,
            f"{one.memory_bytes / BYTES_PER_GIB:.1f}",
            f"{one.bandwidth_bytes_per_s / PER_TERA:.2f}",
            f"{one.flops_per_s() / PER_TERA:,.0f}",
        ]
        for one in known
    ]
    columns: list[tuple[str, Justify]] = [("GPU", "left"), ("architecture", "left"), ("memory GiB", "right")]
    columns += [("bandwidth TB/s", "right"), ("bf16 TFLOP/s", "right")]
    print_rows(args, columns, rows)
    return 0


def _facts(one: "Gpu") -> dict[str, object]:
    low, high = one.usd_per_hour_low, one.usd_per_hour_high
    seen = "" if one.memory_known else ", nominal: nobody has reported what a process gets"
    return {
        "name": one.name,
        "memory": f"{one.memory_bytes / BYTES_PER_GIB:.2f} GiB ({one.memory_bytes:,} B{seen})",
        "memory bandwidth": f"{one.bandwidth_bytes_per_s / PER_TERA:.2f} TB/s",
        "bf16 peak": f"{one.bf16_flops_per_s / PER_TERA:,.0f} TFLOP/s dense",
        "fp8 peak": one.fp8_flops_per_s and f"{one.fp8_flops_per_s / PER_TERA:,.0f} TFLOP/s dense",
        "fp4 peak": one.fp4_flops_per_s and f"{one.fp4_flops_per_s / PER_TERA:,.0f} TFLOP/s dense",
        "host link": one.host_link_bytes_per_s and f"{one.host_link_bytes_per_s / PER_GIGA:,.0f} GB/s one way",
        "link to other GPUs": one.gpu_link_bytes_per_s
        and f"{one.gpu_link_bytes_per_s / PER_GIGA:,.0f} GB/s both ways together",
        "rent": None if low is None else f"{low:.2f} to {high or low:.2f} US dollars an hour, a rough range",
        "vendor": one.vendor,
        "architecture": one.arch,
        "also called": ", ".join(one.aliases),
        "source of memory": one.source_memory,
        "source of speed": one.source_performance,
        "source of rent": one.source_price,
    }
