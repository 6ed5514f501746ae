"""The entry point: one parser, one verb, one exit code.

0 fine, 1 the run failed or differs, 2 wrong input, 3 does not fit, 130 interrupted.
"""

import codecs
import io
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kvsim.errors import KvsimError
from kvsim.version import __version__

if TYPE_CHECKING:
    import argparse

INTERRUPTED = 130
"""128 + SIGINT, as a shell reports it."""

ESCAPED = "kvsim-escaped"
"""Name of the way in which characters are written that the output's encoding cannot hold."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line (that of the process unless given) and return its exit code.

    What kvsim says on purpose goes to standard error as one message; only a bug shows a traceback.
    """
    try:
        _prepare_output()
        return _execute(argv)
    except KvsimError as error:
        print(f"kvsim: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("kvsim: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        _stop_writing()
        return 0
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"kvsim: {where}{error.strerror or error}", file=sys.stderr)
        return 1


def _execute(argv: Sequence[str] | None) -> int:
    try:
        args = _parser().parse_args(argv)
        code: int = args.execute(args)
    except SystemExit:
        sys.stdout.flush()  # of --help, whose reader may have seen enough
        raise
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _stop_writing()
    return code


def _stop_writing() -> None:
    """The reader has seen enough. The interpreter flushes once more when it ends, and must not fail then."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _prepare_output() -> None:
    """Let nothing be written where an output is closed, and every character where the encoding lacks some."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    codecs.register_error(ESCAPED, _escaped)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors=ESCAPED)


def _escaped(error: UnicodeError) -> tuple[str, int]:
    """Write a character as JSON escapes it, so that JSON stays JSON."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4)), error.end


def _parser() -> "argparse.ArgumentParser":
    # Late: an interrupt while they are imported is one like any other.
    import argparse

    from kvsim.cli.calibrate import verb as calibrate
    from kvsim.cli.capacity import verb as capacity
    from kvsim.cli.lists import engines, gpus, models, presets, schema
    from kvsim.cli.reports import diagnose, explain, export, report
    from kvsim.cli.studies import plan, sweep
    from kvsim.cli.trace import verb as trace
    from kvsim.cli.verbs import compare, compare_run, hit_curve, replay, run, validate

    parser = argparse.ArgumentParser(
        prog="kvsim",
        description="Simulate the KV memory of an LLM serving engine: what fits, what wastes it, "
        "when it runs out, and what that does to latency.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"kvsim {__version__}")
    subparsers: Any = parser.add_subparsers(title="verbs", metavar="VERB", required=True)
    answers = (capacity, run, compare, plan, sweep, report, diagnose, explain, export, compare_run)
    checks = (trace, hit_curve, calibrate, validate, replay)
    for verb in (*answers, *checks, models, gpus, engines, presets, schema):
        verb.add(subparsers)
    return parser


if __name__ == "__main__":
    sys.exit(main())
