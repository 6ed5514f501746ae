"""`kvsim schema`: the JSON Schema of a scenario, for editors and other programs."""

import argparse
from typing import Any


def add(subparsers: Any) -> None:
    """Say what the verb takes."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "schema",
        help="print the JSON Schema of a scenario",
        description="Print the JSON Schema of a scenario: every key, its form, its meaning, its default.",
        allow_abbrev=False,
    )
    parser.set_defaults(execute=execute)


def execute(args: argparse.Namespace) -> int:
    """Print the schema."""
    from kvsim import scenario
    from kvsim.metrics.result import to_json

    print(to_json(scenario.schema()), end="")
    return 0
