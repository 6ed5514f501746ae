"""`kvsim capacity`: what fits, and what would."""

import argparse
from typing import Any

from kvsim.cli.capacity.options import add_options

REFUSED = 3
"""Exit code where the engine would refuse to start."""


def add(subparsers: Any) -> None:
    """Say what the verb takes."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "capacity",
        help="how many tokens and requests fit on a GPU, before anything runs",
        description="Plan the KV pool of one engine start: a breakdown of the card, the engine's own lines, the "
        "verdict and what would fit. Exit code 0: fits, 3: does not fit.",
        allow_abbrev=False,
    )
    add_options(parser)
    parser.set_defaults(execute=execute)


def execute(args: argparse.Namespace) -> int:
    """Plan, print."""
    if args.check_csv is not None:
        from kvsim.cli.capacity.check import check

        return check(args)
    from kvsim.capacity.answers.record import record
    from kvsim.capacity.planner import plan
    from kvsim.cli.capacity.building import question

    asked = question(args)
    made = plan(asked.deployment)
    found = record(made, lengths=asked.lengths, shared_tokens=args.shared_prefix_tokens)
    if args.json:
        from kvsim.cli.show import print_json

        print_json(found)
    else:
        from kvsim.cli.capacity.show import print_plan

        print_plan(args, found)
    return 0 if made.verdict.runs else REFUSED
