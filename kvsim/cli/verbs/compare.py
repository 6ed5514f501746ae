"""`kvsim compare`: the variants of one scenario side by side, on the same traffic."""

import argparse
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from kvsim.cli.options import add_output_options, add_simulation_options

RUNS = "runs"
"""Where comparisons go unless told otherwise, below the working directory."""


def add(subparsers: Any) -> None:
    """Say what the verb takes."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "compare",
        help="simulate the variants of a scenario side by side",
        description="Simulate every variant of a scenario on the same traffic and print them side by side.",
        allow_abbrev=False,
    )
    add_simulation_options(parser)
    parser.add_argument(
        "-o",
        metavar="DIR",
        dest="folder",
        help=f"write the run folder there (default: {RUNS}/NAME OF THE SCENARIO; with --json: none)",
    )
    add_output_options(parser, "print the summary of all variants as JSON, and nothing else")
    parser.set_defaults(execute=execute)


def execute(args: argparse.Namespace) -> int:
    """Load all variants, run them, write, print."""
    from kvsim import scenario, study
    from kvsim.cli.progress import progress_bar
    from kvsim.metrics.tables import Dropped, ParquetPieces, Pieces
    from kvsim.reporting.comparison import comparison_summary
    from kvsim.reporting.run_folder import check_run_folder, check_writable, folder_names, write_comparison

    if args.folder is not None:
        check_run_folder(args.folder)
    variants = scenario.load_all(args.scenario, args.overrides)
    name = variants[0].name
    folder = args.folder
    if folder is None and not args.json:
        folder = str(Path(RUNS) / folder_names([name])[0])
        check_run_folder(folder)
    folders = []
    if folder is not None:
        folders = [Path(folder) / one for one in folder_names([variant.label for variant in variants])]
        for one in folders:
            check_writable(one)
    with progress_bar(args) as progress, ExitStack() as stack:
        pieces: list[Pieces] = [
            Dropped() if variant.settings.fleet else stack.enter_context(ParquetPieces(one))
            for variant, one in zip(variants, folders, strict=bool(folders))
        ]
        results = study.compare(
            [(variant.label, variant) for variant in variants],
            seed=args.seed,
            stepwise=args.stepwise,
            check=args.check,
            progress=progress,
            pieces=pieces or [Dropped() for _ in variants],
        )
        if folder is not None:
            write_comparison(name, results, folder, progress)
    if args.json:
        from kvsim.metrics.result import to_json

        print(to_json(comparison_summary(name, results)), end="")
        return 0
    from kvsim.cli.show import print_results

    print_results(args, results)
    walls = [result.wall_s for result in results if result.wall_s is not None]
    if walls:
        print(f"{len(results)} run{'' if len(results) == 1 else 's'} simulated in {sum(walls):.2f} s")
    print(f"written to {folder}")
    return 0
