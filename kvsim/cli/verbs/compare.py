"""`kvsim compare`: the variants of one scenario side by side, on the same traffic."""

import argparse
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvsim.cli.options import add_output_options, add_simulation_options, share, whole
from kvsim.cli.studies.options import add_worker_options
from kvsim.errors import InputError

if TYPE_CHECKING:
    from kvsim.scenario.resolve import Scenario
    from kvsim.study.replication.asked import Asked

RUNS = "runs"
"""Where comparisons go unless told otherwise, below the working directory."""

MSER = "mser"
"""How `--warmup` is told to find the end of the warm-up itself."""


def add(subparsers: Any) -> None:
    """Say what the verb takes."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "compare",
        help="simulate the variants of a scenario side by side",
        description="Simulate every variant of a scenario on the same traffic and print them side by side; "
        "with --replications, --until-ci or --batches also how sure the differences are.",
        allow_abbrev=False,
    )
    add_simulation_options(parser)
    parser.add_argument(
        "--vary",
        metavar="KEY=A,B",
        dest="choices",
        action="append",
        default=[],
        help="make variants of a key's values, e.g. allocator.block_size=16,32; repeated: every combination",
    )
    sure = parser.add_argument_group("how sure")
    sure.add_argument(
        "--replications",
        metavar="R",
        type=whole,
        default=1,
        help="run every variant R times on random streams that all share; of a trace: bootstrap its sessions",
    )
    sure.add_argument(
        "--until-ci",
        metavar="SHARE",
        type=share,
        help="replicate until 95 %% intervals of mean TTFT, TPOT and E2E reach no further than this, e.g. 5%%",
    )
    sure.add_argument("--batches", metavar="N", type=whole, help="cut one long run into N batches of arrivals instead")
    sure.add_argument("--baseline", metavar="NAME", help="the variant that differences are to (default: the first)")
    sure.add_argument(
        "--warmup",
        metavar="mser|TIME",
        help="leave this much out at the start, e.g. 60s; mser: find it by MSER-5, on latency and cache fill",
    )
    add_worker_options(sure, "for replications; default: one a core")
    parser.add_argument(
        "-o",
        metavar="DIR",
        dest="folder",
        help=f"write the run folder there (default: {RUNS}/NAME OF THE SCENARIO; with --json: none)",
    )
    parser.add_argument(
        "--addresses",
        action="store_true",
        help="with run folders, also write where every slot of the pool goes, of each variant: "
        "it is run again, step by step (see `kvsim run --addresses`)",
    )
    add_output_options(parser, "print the summary of all variants as JSON, and nothing else")
    parser.set_defaults(execute=execute)


def execute(args: argparse.Namespace) -> int:
    """Load all variants, run them, write, print."""
    from kvsim import study
    from kvsim.cli.progress import progress_bar
    from kvsim.metrics.tables import Dropped, ParquetPieces, Pieces
    from kvsim.reporting.comparison import comparison_summary
    from kvsim.reporting.run_folder import check_run_folder, check_writable, folder_names, write_comparison
    from kvsim.study.executors import opened

    if args.folder is not None:
        check_run_folder(args.folder)
    variants = _variants(args)
    asked = _asked(args)
    if asked is not None:
        asked.check(variants)
    if args.addresses and (asked is not None or (args.json and args.folder is None)):
        raise InputError(
            "--addresses: goes into the run folders of single runs; name one with -o DIR, without intervals or mser"
        )
    name = variants[0][1].name
    folder = args.folder
    if folder is None and not args.json:
        folder = str(Path(RUNS) / folder_names([name])[0])
        check_run_folder(folder)
    folders = []
    if folder is not None:
        folders = [Path(folder) / one for one in folder_names([label for label, _ in variants])]
        for one in folders:
            check_writable(one)
    found = None
    with progress_bar(args) as progress, ExitStack() as stack:
        pieces: list[Pieces] = [
            Dropped() if variant.settings.fleet else stack.enter_context(ParquetPieces(one))
            for (_, variant), one in zip(variants, folders, strict=bool(folders))
        ]
        options: dict[str, Any] = {
            "seed": args.seed,
            "stepwise": args.stepwise,
            "check": args.check,
            "progress": progress,
            "pieces": pieces or [Dropped() for _ in variants],
        }
        if asked is None:
            results = study.compare(variants, **options)
            if args.addresses:
                from kvsim.study.mapped import with_addresses

                results = with_addresses(variants, results, seed=args.seed, progress=progress, most_tokens=None)
        else:
            alone = None if asked.shares_out(variants) else 1
            workers = stack.enter_context(opened(jobs=alone or args.jobs, cluster=None if alone else args.cluster))
            results, found = study.compare_with_intervals(variants, asked, executor=workers.executor, **options)
        if folder is not None:
            write_comparison(name, results, folder, progress, found)
    if args.json:
        from kvsim.metrics.result import to_json

        print(to_json(comparison_summary(name, results, found)), end="")
        return 0
    if found is None:
        from kvsim.cli.show import print_results

        print_results(args, results)
    else:
        from kvsim.cli.studies.intervals import print_study

        print_study(args, results, found)
    walls = [result.wall_s for result in results if result.wall_s is not None]
    if found is not None and found.method == "replications":
        walls = [run.wall_s for variant in found.variants for run in variant.runs]
    if walls:
        print(f"{len(walls)} run{'' if len(walls) == 1 else 's'} simulated in {sum(walls):.2f} s")
    print(f"written to {folder}")
    return 0


def _variants(args: argparse.Namespace) -> "list[tuple[str, Scenario]]":
    from kvsim import scenario

    overrides = list(args.overrides)
    if args.warmup not in (None, MSER):
        overrides.append(f"window.warmup={_duration(args.warmup)}")
    if args.choices:
        from kvsim.scenario.variants import load_varied, varied

        return load_varied(args.scenario, overrides, [varied(text) for text in args.choices])
    return [(one.label, one) for one in scenario.load_all(args.scenario, overrides)]


def _asked(args: argparse.Namespace) -> "Asked | None":
    """What is asked beyond one run of each variant; None where that is all."""
    given = (args.until_ci, args.batches, args.baseline)
    if args.replications == 1 and given == (None, None, None) and args.warmup != MSER:
        for option in ("jobs", "cluster"):
            if getattr(args, option) is not None:
                raise InputError(
                    f"--{option}: one run of each variant is not shared out; leave it out, or add --replications 10"
                )
        return None
    from kvsim.study.replication.asked import Asked

    return Asked(
        replications=args.replications,
        until_ci=args.until_ci,
        batches=args.batches,
        baseline=args.baseline,
        mser=args.warmup == MSER,
    )


def _duration(text: str) -> str:
    from kvsim.units import parse_duration

    try:
        parse_duration(text)
    except ValueError as error:
        raise InputError(f"--warmup {text}: is neither {MSER} nor a time ({error})") from None
    return text
