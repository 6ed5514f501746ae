"""`kvsim sweep`: one scenario at many points."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvsim.cli.options import add_output_options, add_scenario_options
from kvsim.cli.studies.options import add_study_options, chosen_variants
from kvsim.errors import InputError

if TYPE_CHECKING:
    from kvsim.study.sweeps.points import Point

RUNS = "runs"
"""Where sweeps go unless told otherwise, below the working directory."""

_ID_DIGITS = 8
"""Digits of a study's fingerprint in the name of its folder."""


def add(subparsers: Any) -> None:
    """Say what the verb takes."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "sweep",
        help="simulate a scenario at many points: a grid, a list, or a Latin hypercube",
        description="Simulate a scenario at every point of a grid, of a list or of a Latin hypercube over dotted keys, "
        "and print what each point gives and costs. A scenario with variants is swept in each of them.",
        allow_abbrev=False,
    )
    add_scenario_options(parser)
    parser.add_argument(
        "--variant", metavar="NAME", dest="variants", action="append", help="this variant alone; may be repeated"
    )
    parser.add_argument(
        "--grid",
        metavar="KEY=A,B,C",
        action="append",
        default=[],
        help="values of a key, e.g. workload.rate=2/s,4/s; repeated: all combinations",
    )
    parser.add_argument(
        "--list", metavar="FILE", dest="list_file", help="points from a file: CSV with keys in its first line, or JSONL"
    )
    parser.add_argument(
        "--latin-hypercube",
        metavar=("N", "KEY=LOW..HIGH[:log]"),
        nargs="+",
        help="N points that cover ranges evenly, e.g. 50 workload.rate=1/s..8/s pool.tokens=10000..80000:log",
    )
    add_study_options(parser)
    parser.add_argument(
        "--metrics",
        metavar="NAMES",
        help="what is told of each point: waste_share, met_share, or columns of the runs, e.g. ttft_s.p99,steps",
    )
    parser.add_argument(
        "-o",
        metavar="DIR",
        dest="folder",
        help=f"keep the runs there (default: {RUNS}/NAME-sweep-HASH, one for each study; with --json: nowhere)",
    )
    add_output_options(parser, "print the points as JSON, and nothing else")
    parser.set_defaults(execute=execute)


def execute(args: argparse.Namespace) -> int:
    """Plan the runs, run what is missing, write, print. 1 where no run has a result."""
    from kvsim.cli.studies.progress import study_bar
    from kvsim.reporting.run_folder import check_writable, folder_names
    from kvsim.reporting.sweep import check_measures, sweep_summary, write_sweep
    from kvsim.study.sweeps.sweep import planned, run_all

    points = _points(args)
    whole = planned(chosen_variants(args.scenario, args), points, replications=args.replications, seed=args.seed)
    names = [name.strip() for name in args.metrics.split(",")] if args.metrics else None
    check_measures(whole, names or ())
    folder = args.folder
    if folder is None and not args.json:
        name = f"{folder_names([whole.name])[0]}-sweep-{whole.identity.fingerprint[:_ID_DIGITS]}"
        folder = str(Path(RUNS) / name)
    if folder is None and args.resume:
        raise InputError("--resume: nothing is kept with --json alone; name the folder of the study with -o DIR")
    if folder is not None:
        check_writable(folder)
    try:
        with study_bar(args) as progress:
            run_all(whole, jobs=args.jobs, cluster=args.cluster, folder=folder, resume=args.resume, progress=progress)
    except KeyboardInterrupt:
        if folder is not None and whole.outcomes:
            print(
                f"kvsim: {len(whole.rows)} of {len(whole.runs)} runs are kept in {folder}; --resume goes on",
                file=sys.stderr,
            )
        raise
    if folder is not None:
        write_sweep(whole, folder, names)
    if args.json:
        from kvsim.cli.show import print_json

        print_json(sweep_summary(whole, names))
    else:
        from kvsim.cli.studies.show import print_sweep

        print_sweep(args, whole, names)
        print(f"written to {folder}")
    return 1 if len(whole.failed) == len(whole.runs) else 0


def _points(args: argparse.Namespace) -> "list[Point]":
    from kvsim.study.sweeps.lists import list_of
    from kvsim.study.sweeps.points import grid_of, hypercube_of

    ways = [bool(args.grid), args.list_file is not None, args.latin_hypercube is not None]
    if sum(ways) != 1:
        given = "none is given" if not any(ways) else "more than one is given"
        raise InputError(
            f"points: {given}; use one of --grid KEY=A,B,C, --list FILE and --latin-hypercube N KEY=LOW..HIGH"
        )
    if args.grid:
        return grid_of(args.grid)
    if args.list_file is not None:
        return list_of(args.list_file)
    return hypercube_of(args.latin_hypercube, args.seed or 0)
