"""`kvsim report`: figures and one page of runs, comparisons, studies, sweeps and plans, or of a scenario."""

import argparse
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvsim.cli.options import add_changes, add_output_options
from kvsim.cli.studies.options import chosen_variants
from kvsim.errors import InputError

if TYPE_CHECKING:
    from kvsim.cli.progress import Progress
    from kvsim.metrics.tables import Pieces
    from kvsim.reporting.inputs import Subject
    from kvsim.reporting.page import Written

RUNS = "runs"
"""Where the runs of a scenario go unless told otherwise, below the working directory."""

FORMATS = ("png", "svg", "pdf")


def add(subparsers: Any) -> None:
    """Say what the verb takes."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "report",
        help="figures and one page to look at",
        description="Write the figures (PNG, SVG, PDF), one self-contained HTML page with the memory map, and a README "
        "of runs, comparisons, studies, sweeps or plans; of a scenario, simulate its variants first.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "inputs",
        metavar="INPUT",
        nargs="+",
        help="a folder that kvsim wrote (run, compare, sweep, plan, capacity); several: side by side. Or one scenario",
    )
    parser.add_argument(
        "-o",
        metavar="DIR",
        dest="folder",
        help=f"write there (default: the folder itself; of a scenario: {RUNS}/ITS NAME; of several folders: needed)",
    )
    parser.add_argument(
        "--formats",
        metavar="LIST",
        type=_formats,
        default=FORMATS,
        help=f"in which forms figures are written (default {','.join(FORMATS)})",
    )
    parser.add_argument("--no-page", action="store_true", help="write the figures and the README alone")
    of_scenario = parser.add_argument_group("of a scenario")
    add_changes(of_scenario)
    of_scenario.add_argument(
        "--variant", metavar="NAME", dest="variants", action="append", help="this variant alone; may be repeated"
    )
    of_scenario.add_argument(
        "--no-addresses",
        action="store_true",
        help="record nothing for the memory map, which takes every step, nor what prompts share",
    )
    add_output_options(parser, "print what was written as JSON, and nothing else")
    parser.set_defaults(execute=execute)


def execute(args: argparse.Namespace) -> int:
    """Load or simulate, draw, write, print."""
    from kvsim.cli.progress import progress_bar
    from kvsim.reporting.inputs import is_folder
    from kvsim.reporting.page import write_report
    from kvsim.reporting.run_folder import check_writable

    if args.folder is not None:
        check_writable(args.folder)
    folders = [is_folder(text) for text in args.inputs]
    with progress_bar(args) as progress:
        if all(folders):
            subject, folder = _of_folders(args)
        elif len(folders) == 1:
            subject, folder = _of_scenario(args, progress)
        else:
            file = args.inputs[folders.index(False)]
            raise InputError(f"{file}: is a file beside other inputs; name folders alone, or one scenario")
        check_writable(folder)
        written = write_report(subject, folder, formats=args.formats, page=not args.no_page, progress=progress)
    if args.json:
        from kvsim.cli.show import print_json

        print_json(
            {
                "folder": str(folder),
                "page": None if written.page is None else str(written.page),
                "page_bytes": None if written.page is None else written.page.stat().st_size,
                "files": sorted(str(path) for path in written.paths),
                "maps": [
                    {"name": one.name, "recorded": one.recorded, "changes": one.changes, "instants": one.instants}
                    for one in written.maps
                ],
            }
        )
        return 0
    _print(args, subject, written)
    return 0


def _of_folders(args: argparse.Namespace) -> "tuple[Subject, Path]":
    from kvsim.reporting.inputs import load_subject

    for option, given in (("--set", args.overrides), ("--seed", args.seed is not None), ("--variant", args.variants)):
        if given:
            raise InputError(f"{option}: is for a scenario, and {args.inputs[0]} is a folder of runs that are done")
    if args.folder is None and len(args.inputs) > 1:
        raise InputError("-o: several folders make one report; name a folder for it with -o DIR")
    return load_subject(args.inputs), Path(args.inputs[0] if args.folder is None else args.folder)


def _of_scenario(args: argparse.Namespace, progress: "Progress | None") -> "tuple[Subject, Path]":
    """Simulate the variants, and write their run folders where the report goes."""
    from kvsim import study
    from kvsim.metrics.tables import ParquetPieces
    from kvsim.reporting.inputs import Subject
    from kvsim.reporting.run_folder import check_run_folder, folder_names, write_comparison, write_run
    from kvsim.study.mapped import with_addresses

    picked = chosen_variants(args.inputs[0], args)
    name = picked[0].name
    folder = Path(args.folder) if args.folder is not None else Path(RUNS) / folder_names([name])[0]
    check_run_folder(folder)
    labels = folder_names([one.label for one in picked])
    places = [folder / label for label in labels] if len(picked) > 1 else [folder]
    with ExitStack() as stack:
        pieces: list[Pieces | None] = [
            None if one.settings.fleet else stack.enter_context(ParquetPieces(place))
            for one, place in zip(picked, places, strict=True)
        ]
        variants = [(one.label, one) for one in picked]
        results = study.compare(variants, seed=args.seed, progress=progress, pieces=pieces)
        if not args.no_addresses:
            results = with_addresses(variants, results, prompts=True, seed=args.seed, progress=progress)
        if len(results) > 1:
            write_comparison(name, results, folder, progress, figures=False)
        else:
            write_run(results[0], folder, progress, figures=False)
    return Subject(name=name, results=results), folder


def _print(args: argparse.Namespace, subject: "Subject", written: "Written") -> None:
    """Say what was found, and where to look."""
    from kvsim.cli.show import console, print_text
    from kvsim.reporting.finding import finding

    out = console(args)
    if subject.results:
        print_text(out, finding(subject.results))
    for one in written.maps:
        how = f"exact at {one.instants:,} instants" if one.instants else "all of them"
        how = how if one.text else "for which the page has no room"
        print_text(out, f"memory map of {one.name}: {one.recorded:,} changes, {how}", "dim")
    figures = len([path for path in written.paths if path.suffix in (".png", ".svg", ".pdf")])
    print_text(out, f"{figures} figure files", "dim")
    if written.page is not None:
        print(f"page written to {written.page} ({written.page.stat().st_size / 1e6:.2f} MB)")
    else:
        print(f"written to {written.paths[-1].parent}")


def _formats(text: str) -> tuple[str, ...]:
    formats = tuple(dict.fromkeys(part.strip().lower() for part in text.split(",")))
    for one in formats:
        if one not in FORMATS:
            raise argparse.ArgumentTypeError(f"{one!r} is no form of a figure; some of {','.join(FORMATS)} are")
    return formats
