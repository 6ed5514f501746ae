"""`kvsim compare-run`: a recorded run of a real server beside its simulation."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvsim.cli.options import add_changes, add_output_options, seconds

if TYPE_CHECKING:
    from kvsim.study.recorded.compare import Row
    from kvsim.study.recorded.session import Compared


def add(subparsers: Any) -> None:
    """Say what the verb takes."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "compare-run",
        help="lay a recorded run of a real server beside its simulation",
        description="Simulate a run that was recorded on a real server, or a scenario, and compare latencies, requests "
        "running and waiting, KV use over time and preemptions with what was measured.",
        allow_abbrev=False,
    )
    parser.add_argument("side", metavar="META", help="what the server had resolved (JSON), or a scenario (YAML)")
    parser.add_argument(
        "measured",
        metavar="MEASURED",
        nargs="+",
        help="what was measured: a table of requests (first, with META), a time series, a log of vLLM or SGLang, a "
        "scrape of /metrics, or a result of `vllm bench serve`",
    )
    parser.add_argument("--gpu", metavar="NAME", help="the card, where META names none")
    parser.add_argument(
        "--scrape-interval",
        metavar="SECONDS",
        type=seconds,
        dest="interval_s",
        help="between scrapes that have no times of their own (default 15)",
    )
    add_changes(parser)
    parser.add_argument("--variant", metavar="NAME", help="which variant of a scenario that has some")
    parser.add_argument("-o", metavar="DIR", dest="folder", help="write figure, tables and report there")
    parser.add_argument(
        "--bench", metavar="FILE", help="write the simulated side there as `vllm bench serve` writes results"
    )
    add_output_options(parser, "print the comparison as JSON, and nothing else")
    parser.set_defaults(execute=execute)


def execute(args: argparse.Namespace) -> int:
    """Read, simulate, compare, write, print."""
    from kvsim.cli.progress import progress_bar
    from kvsim.cli.show import print_json
    from kvsim.study.recorded.session import compare_run

    _check_outputs(args)
    with progress_bar(args) as progress:
        found = compare_run(
            Path(args.side),
            [Path(name) for name in args.measured],
            gpu=args.gpu,
            overrides=args.overrides,
            variant=args.variant,
            seed=args.seed,
            scrape_interval_s=args.interval_s,
            progress=progress,
        )
    if args.bench is not None:
        from kvsim.metrics.result import write_whole
        from kvsim.study.recorded.benchmark import bench_serve_text

        write_whole(Path(args.bench), bench_serve_text(found.result).encode())
    if args.folder is not None:
        from kvsim.reporting.recorded.report import write_recorded

        write_recorded(found, args.folder)
    if args.json:
        print_json(found.as_json())
    else:
        _print(args, found)
    return 0


def _check_outputs(args: argparse.Namespace) -> None:
    from kvsim.reporting.run_folder import check_file, check_writable

    if args.folder is not None:
        check_writable(args.folder)
    if args.bench is not None:
        check_file(args.bench, "--bench")


def _print(args: argparse.Namespace, found: "Compared") -> None:
    from kvsim.cli.show import Justify, console, print_rows, print_text
    from kvsim.reporting.finding import sources
    from kvsim.reporting.recorded.rows import cells, pairs_line

    out = console(args)
    print_text(out, f"{found.result.name}: measured ({found.comparison.measured.source}) beside simulated", "bold")
    columns: list[tuple[str, Justify]] = [("", "left"), ("unit", "left")]
    columns += [(name, "right") for name in ("measured", "simulated", "off by", "apart\non average")]
    print_rows(args, columns, [cells(row) for row in _shown(found.comparison.rows)])
    out.print()
    line = pairs_line(found.comparison)
    if line:
        print_text(out, line)
    for note in found.notes:
        print_text(out, f"note: {note}")
    for line in sources(found.result):
        print_text(out, line, "dim")
    for path in (args.folder, args.bench):
        if path is not None:
            print(f"written to {path}")


def _shown(rows: "tuple[Row, ...]") -> "list[Row]":
    return [row for row in rows if row.simulated is not None]
