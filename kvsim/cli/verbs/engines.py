"""`kvsim engines`: the engine profiles, or one of them with its known deviations."""

import argparse
from typing import Any

from kvsim.cli.options import add_output_options


def add(subparsers: Any) -> None:
    """Say what the verb takes."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "engines",
        help="list the engine profiles, or show one",
        description="List the engine profiles, each the rules of one release, or show one in full.",
        allow_abbrev=False,
    )
    parser.add_argument("name", metavar="NAME", nargs="?", help="a profile, e.g. vllm@0.33-sync")
    add_output_options(parser, "print JSON, and nothing else")
    parser.set_defaults(execute=execute)


def execute(args: argparse.Namespace) -> int:
    """List all, or show the one that was named."""
    from dataclasses import asdict

    from kvsim.catalog.engines import profile, profiles
    from kvsim.cli.show import Justify, print_facts, print_json, print_rows

    if args.name is not None:
        facts = asdict(profile(args.name))
        print_json(facts) if args.json else print_facts(args, facts)
        return 0
    known = profiles()
    if args.json:
        print_json([asdict(one) for one in known])
        return 0
    rows = [
        [one.name, f"{one.engine} {one.version}", one.description, "\n".join(one.known_deviations)] for one in known
    ]
    columns: list[tuple[str, Justify]] = [
        ("profile", "left"),
        ("release", "left"),
        ("rules", "left"),
        ("known deviations", "left"),
    ]
    print_rows(args, columns, rows)
    return 0
