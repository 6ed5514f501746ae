"""`kvsim calibrate trace`: what a simulated allocator did, for a real one to replay."""

import argparse
from pathlib import Path
from typing import Any

from kvsim.cli.options import whole


def add(actions: Any) -> None:
    """Say what the action takes."""
    parser: argparse.ArgumentParser = actions.add_parser(
        "trace",
        help="write an allocation trace that `run --frag` replays on the GPU's allocator",
        description="Write what the allocator of a run with --addresses did, region by region, as a trace that "
        "`kvsim calibrate run --frag` replays against the real allocator.",
        allow_abbrev=False,
    )
    parser.add_argument("run", metavar="DIR", help="a run folder of `kvsim run --addresses`, of contiguous or reserve")
    parser.add_argument("-o", metavar="FILE", dest="file", required=True, help="write the trace there")
    parser.add_argument("--name", metavar="WORD", required=True, help="what results call it")
    parser.add_argument(
        "--operations", metavar="N", type=whole, default=2000, help="how many operations at most (default: 2000)"
    )
    parser.set_defaults(execute=execute)


def execute(args: argparse.Namespace) -> int:
    """Read the addresses, write the trace."""
    from kvsim.microbench.harness.allocations import write_trace
    from kvsim.reporting.run_folder import check_file

    check_file(args.file)
    count = write_trace(Path(args.run), Path(args.file), name=args.name, most=args.operations)
    print(f"{count:,} operations written to {args.file}")
    return 0
