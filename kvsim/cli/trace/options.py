"""Options that the actions of `kvsim trace` share: which trace, and what its file cannot say of itself."""

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING

from kvsim.cli.options import whole
from kvsim.errors import InputError

if TYPE_CHECKING:
    from kvsim.workload.readers.clients.servegen import Population
    from kvsim.workload.readers.options import ReadOptions
    from kvsim.workload.trace.recording import Recording


def add_reading_options(parser: argparse.ArgumentParser) -> None:
    """Which trace, and how it is read."""
    parser.add_argument("trace", metavar="FILE", help="a file (plain or gzip), a folder, or a packaged trace")
    parser.add_argument("--format", metavar="NAME", help="the trace's format; default: known from how it begins")
    parser.add_argument(
        "--on-bad-row", choices=("error", "drop"), default="error", help="what happens at a row that cannot be used"
    )
    parser.add_argument("--requests", metavar="N", type=whole, help="use the first N requests alone")
    told = parser.add_argument_group("what the file cannot say")
    told.add_argument("--block-tokens", metavar="N", type=whole, help="tokens of a block of ids")
    told.add_argument(
        "--prompts",
        choices=("whole", "delta"),
        default="whole",
        help="whether a session's rows tell whole prompts, or what each adds; default: whole",
    )
    told.add_argument(
        "--failed", choices=("drop", "keep"), default="drop", help="calls that came to nothing; default: drop, counted"
    )
    told.add_argument("--chars-per-token", metavar="X", type=_ratio, help="of a trace of texts: characters a token has")
    told.add_argument(
        "--tokenizer", metavar="MODULE:FUNCTION", help="of a trace of texts: a function from a text to its tokens"
    )
    told.add_argument("--output-tokens", metavar="N", type=whole, help="of a trace without outputs: how long they are")
    told.add_argument(
        "--columns",
        metavar="NAME=COLUMN,..",
        type=_columns,
        default={},
        help="of a table: which column is the time, prompt, output, session, hash_ids, priority or tenant",
    )
    told.add_argument("--time-unit", choices=("s", "ms", "us", "ns"), default="s", help="of a table: unit of its times")
    told.add_argument(
        "--shared-system",
        action="store_true",
        help="of weka sessions: invent that those of equal tools and system prompts begin alike",
    )


def recording(args: argparse.Namespace) -> "Recording":
    """The trace that was named; InputError where something about it is wrong."""
    from kvsim.workload.trace.recording import Recording

    if args.columns and args.format is None:
        args.format = "table"
    try:
        return Recording(
            args.trace,
            format=args.format,
            on_bad_row=args.on_bad_row,
            requests=args.requests,
            options=_read_options(args),
        )
    except ValueError as error:
        raise InputError(f"--{str(error).replace('_', '-', 1)}") from error


def population(args: argparse.Namespace) -> "Population | None":
    """The clients that were named, where it is clients: a ServeGen folder or archive. None: it is a trace."""
    from kvsim.workload.readers.clients.servegen import Population, is_population
    from kvsim.workload.readers.files.source import Source
    from kvsim.workload.trace import trace_path

    path = trace_path(args.trace)
    if args.format is None and is_population(Source(path, args.trace).head):
        return Population(path, args.trace)
    return None


def _read_options(args: argparse.Namespace) -> "ReadOptions":
    from kvsim.workload.readers.options import ReadOptions, tokenizer_of

    return ReadOptions(
        block_tokens=args.block_tokens,
        prompts=args.prompts,
        failed=args.failed,
        chars_per_token=args.chars_per_token,
        tokenizer=None if args.tokenizer is None else tokenizer_of(args.tokenizer),
        output_tokens=args.output_tokens,
        columns=args.columns,
        time_unit=args.time_unit,
        shared_system=args.shared_system,
    )


def _columns(text: str) -> Mapping[str, str]:
    pairs = [pair.partition("=") for pair in text.split(",")]
    if not all(name and equals and column for name, equals, column in pairs):
        raise argparse.ArgumentTypeError(f"{text!r} is no list of NAME=COLUMN, e.g. prompt=tokens_in,output=tokens_out")
    return {name.strip(): column.strip() for name, _, column in pairs}


def _ratio(text: str) -> float:
    try:
        ratio = float(text)
    except ValueError:
        ratio = 0.0
    if not 0 < ratio < 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of characters above 0, e.g. 4")
    return ratio
