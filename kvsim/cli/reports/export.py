"""`kvsim export`: a run in the forms of other tools."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvsim.cli.options import seconds
from kvsim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kvsim.reporting.exports import Export

FORMS = ("chrome-trace", "prometheus", "grafana", "csv", "markdown")
"""What `--to` takes: the names in `reporting.exports.EXPORTS`, which is loaded when it is needed."""


def add(subparsers: Any) -> None:
    """Say what the verb takes."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "export",
        help="write a run in the forms of other tools",
        description="Write a run for other tools: a timeline for Perfetto, Prometheus text with vLLM's metric names, a "
        "Grafana dashboard of those, every table as CSV, or the summary as Markdown.",
        allow_abbrev=False,
    )
    parser.add_argument("run", metavar="RUN", help="a folder that `kvsim run -o` or `kvsim compare -o` wrote")
    parser.add_argument("--to", choices=FORMS, required=True, dest="form", help="the form")
    parser.add_argument(
        "-o", metavar="PATH", dest="target", help="the file, or for csv the folder; without it a file is printed"
    )
    parser.add_argument(
        "--every",
        metavar="TIME",
        dest="every_s",
        type=seconds,
        help="for prometheus: a look at the run every so often, e.g. 5s, as OpenMetrics with times since its start; "
        "without it one at its end",
    )
    parser.set_defaults(execute=execute)


def execute(args: argparse.Namespace) -> int:
    """Read, write, say where."""
    from kvsim.reporting.exports import EXPORTS, Options, read_source
    from kvsim.reporting.run_folder import check_file, check_writable

    export = EXPORTS[args.form]
    if args.every_s is not None and not export.over_time:
        takers = ", ".join(one.name for one in EXPORTS.values() if one.over_time)
        raise InputError(f"--every: --to {args.form} shows the whole run; leave it out, or take --to {takers}")
    if args.target is None and not export.single:
        raise InputError(f"--to {args.form}: is a folder of files; name it with -o DIR")
    if args.target is not None:
        (check_file if export.single else check_writable)(args.target)
    files = export.files(read_source(args.run), Options(every_s=args.every_s))
    if args.target is None:
        for _, text in files:
            sys.stdout.writelines(text)
        return 0
    written = [_write(export, Path(args.target), name, text) for name, text in files]
    if export.single:
        print(f"written to {args.target}")
    else:
        print(f"{len(written)} files written to {args.target}")
    return 0


def _write(export: "Export", target: Path, name: str, text: "Iterable[str]") -> Path:
    from kvsim.metrics.result import write_whole

    return write_whole(target if export.single else target / name, (part.encode() for part in text))
