"""`kvsim calibrate export`: the points of a run as a flat table."""

import argparse
import sys
from pathlib import Path
from typing import Any


def add(actions: Any) -> None:
    """Say what the action takes."""
    parser: argparse.ArgumentParser = actions.add_parser(
        "export",
        help="write the points of a run as CSV",
        description="Write every point of the results of `kvsim calibrate run` as a row of a CSV, sizes as columns of "
        "their own. Nothing is refused but what cannot be read.",
        allow_abbrev=False,
    )
    parser.add_argument("results", metavar="RESULTS", help="results of `kvsim calibrate run`")
    parser.add_argument("-o", metavar="FILE", dest="file", help="write the table there instead of printing it")
    parser.set_defaults(execute=execute)


def execute(args: argparse.Namespace) -> int:
    """Read, write."""
    from kvsim.metrics.result import write_whole
    from kvsim.microbench.export import to_csv
    from kvsim.microbench.results import read_results
    from kvsim.reporting.run_folder import check_file

    if args.file is not None:
        check_file(args.file)
    table = to_csv(read_results(Path(args.results)))
    if args.file is None:
        sys.stdout.write(table)
    else:
        write_whole(Path(args.file), table.encode())
    return 0
