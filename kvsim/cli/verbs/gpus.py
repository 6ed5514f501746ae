"""`kvsim gpus`: the GPUs that kvsim knows, or one of them in full."""

import argparse
from typing import Any

from kvsim.cli.options import add_output_options

BYTES_PER_GIB = 2**30
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
        facts = asdict(gpu(args.name))
        print_json(facts) if args.json else print_facts(args, facts)
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
