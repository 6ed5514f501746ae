"""`kvsim models`: the models that kvsim knows, or one of them in full."""

import argparse
from typing import Any

from kvsim.cli.options import add_output_options

BYTES_PER_GIB = 2**30
BYTES_PER_KIB = 2**10


def add(subparsers: Any) -> None:
    """Say what the verb takes."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "models",
        help="list the models, or show one",
        description="List the models with their KV bytes per token (bf16, one GPU), or show one in full.",
        allow_abbrev=False,
    )
    parser.add_argument("name", metavar="NAME", nargs="?", help="a name, or the path of a config.json")
    add_output_options(parser, "print JSON, and nothing else")
    parser.set_defaults(execute=execute)


def execute(args: argparse.Namespace) -> int:
    """List all, or show the one that was named."""
    from dataclasses import asdict

    from kvsim.catalog.footprint import Footprint
    from kvsim.catalog.models import model, models
    from kvsim.cli.show import Justify, print_facts, print_json, print_rows

    if args.name is not None:
        one = model(args.name)
        footprint = Footprint(one)
        facts = asdict(one) | {
            "kv_bytes_per_token": footprint.kv_bytes_per_token,
            "weight_bytes": footprint.weight_bytes if one.weights_known else None,
        }
        print_json(facts) if args.json else print_facts(args, facts)
        return 0
    known = models()
    if args.json:
        print_json([asdict(one) for one in known])
        return 0
    rows = []
    for one in known:
        footprint = Footprint(one)
        weight_bytes = footprint.weight_bytes if one.weights_known else None
        rows.append(
            [
                one.name,
                one.attention,
                str(one.layers),
                f"{footprint.kv_bytes_per_token / BYTES_PER_KIB:,.1f}",
                "-" if weight_bytes is None else f"{weight_bytes / BYTES_PER_GIB:,.1f}",
                f"{one.max_context:,}",
            ]
        )
    columns: list[tuple[str, Justify]] = [("model", "left"), ("attention", "left"), ("layers", "right")]
    columns += [("KV KiB\n/token", "right"), ("weights\nGiB", "right"), ("context", "right")]
    print_rows(args, columns, rows)
    return 0
