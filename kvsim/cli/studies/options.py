"""Options of every study: how often, where, and whether to go on with what is there."""

import argparse
from typing import TYPE_CHECKING

from kvsim.cli.options import whole
from kvsim.errors import InputError

if TYPE_CHECKING:
    from kvsim.scenario.resolve import Scenario


def add_study_options(parser: argparse.ArgumentParser) -> None:
    """How many replications, on which workers, into which folder."""
    parser.add_argument(
        "--replications",
        metavar="R",
        type=whole,
        default=1,
        help="runs at each point, with seeds that follow from the first and are the same at every point (default 1)",
    )
    add_worker_options(parser, "default: one a core")
    parser.add_argument(
        "--resume", action="store_true", help="go on with the study in the folder: only what is missing is run"
    )


def add_worker_options(parser: "argparse.ArgumentParser | argparse._ArgumentGroup", default: str) -> None:
    """On which workers; `default` says on which where nobody says so."""
    parser.add_argument("--jobs", metavar="N", type=whole, help=f"processes of this machine that compute ({default})")
    parser.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="compute on a dask cluster: the scheduler's address, such as tcp://HOST:8786, or `local` for workers of "
        "this machine (needs the extra `cluster`); the results are the same to the bit",
    )


def chosen_variants(file: str, args: argparse.Namespace) -> "list[Scenario]":
    """The variants of the scenario in a file that were named with --variant; all of them where none was."""
    from kvsim import scenario

    loaded = scenario.load_all(file, args.overrides)
    for name in args.variants or ():
        if name not in [one.variant for one in loaded]:
            known = ", ".join(one.variant for one in loaded if one.variant) or "none"
            raise InputError(f"{file}: {name} is no variant of this scenario; it has {known}")
    return [one for one in loaded if not args.variants or one.variant in args.variants]
