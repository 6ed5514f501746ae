"""`kvsim capacity`: what fits, and what would."""

import argparse
from contextlib import suppress
from typing import Any

from kvsim.cli.capacity.options import add_options
from kvsim.errors import InputError

REFUSED = 3
"""Exit code where the engine would refuse to start."""


def add(subparsers: Any) -> None:
    """Say what the verb takes."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "capacity",
        help="how many tokens and requests fit on a GPU, before anything runs",
        description="Plan the KV pool of one engine start: a breakdown of the card, the engine's own lines, the "
        "verdict and what would fit. Exit code 0: the engine would start (fits, at_risk, offload), 3: it would "
        "not (refused), 2: wrong input.",
        allow_abbrev=False,
    )
    add_options(parser)
    parser.set_defaults(execute=execute)


def execute(args: argparse.Namespace) -> int:
    """Read what is asked, plan, print."""
    if args.folder is not None:
        from kvsim.reporting.run_folder import check_writable

        check_writable(args.folder)
    if args.settled is not None:
        from kvsim.reporting.run_folder import check_file

        if args.from_log is None:
            raise InputError("--settled needs --from-log: a log settles overheads")
        check_file(args.settled, "--settled")
    if args.expected is not None:
        from kvsim.reporting.run_folder import check_file

        if args.check_csv is None:
            raise InputError("--expected needs --check-csv: a table of logged starts tells what to expect")
        check_file(args.expected, "--expected")
    if args.check_csv is not None:
        from kvsim.cli.capacity.check import check

        return check(args)
    from kvsim.capacity.answers.record import record
    from kvsim.capacity.planner import plan
    from kvsim.cli.capacity.building import question
    from kvsim.cli.capacity.commands import print_flags, read_command
    from kvsim.cli.capacity.logs import comparison, print_comparison, read_settled, read_start, settled, write_settled

    log = read_start(args) if args.from_log is not None else None
    flags = read_command(args) if args.engine_args is not None else None
    if args.overheads is not None:
        read_settled(args)
    asked = question(args)
    made = plan(asked.deployment)
    found = record(made, lengths=asked.lengths, shared_tokens=args.shared_prefix_tokens)
    if flags is not None:
        found["flags"] = flags
    if log is not None:
        found["log"] = {"outcome": log.outcome, "reason_class": log.reason_class, "reason": log.reason}
        found["comparison"] = comparison(log, found)
        found["settled"] = settled(args, log, made)
        if args.settled is not None:
            write_settled(args.settled, found["settled"])
    if args.folder is not None:
        from kvsim.reporting.capacity import write_plan

        write_plan(made, found, args.folder)
    # A reader that has seen enough changes nothing about the verdict.
    with suppress(BrokenPipeError):
        if args.json:
            from kvsim.cli.show import print_json

            print_json(found)
        else:
            from kvsim.cli.capacity.show import print_plan

            print_plan(args, found)
            if flags is not None:
                print_flags(args, flags)
            if log is not None:
                print_comparison(args, log, found["comparison"])
    return 0 if made.verdict.runs else REFUSED
