"""The entry point: one parser, one verb, one exit code.

0 fine, 1 the run failed or differs, 2 wrong input, 3 does not fit, 130 interrupted.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any

from kvsim.cli.verbs import compare, engines, gpus, models, replay, run, schema
from kvsim.errors import KvsimError
from kvsim.version import __version__

VERBS = (run, compare, models, gpus, engines, schema, replay)
INTERRUPTED = 130
"""128 + SIGINT, as a shell reports it."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line (that of the process unless given) and return its exit code.

    What kvsim says on purpose goes to standard error as one message; only a bug shows a traceback.
    """
    args = _parser().parse_args(argv)
    try:
        code: int = args.execute(args)
        sys.stdout.flush()
    except KvsimError as error:
        print(f"kvsim: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("kvsim: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has seen enough. The interpreter flushes once more when it ends, and must not fail then.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"kvsim: {where}{error.strerror or error}", file=sys.stderr)
        return 1
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kvsim",
        description="Simulate the KV memory of an LLM serving engine: what fits, what wastes it, "
        "when it runs out, and what that does to latency.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"kvsim {__version__}")
    subparsers: Any = parser.add_subparsers(title="verbs", metavar="VERB", required=True)
    for verb in VERBS:
        verb.add(subparsers)
    return parser


if __name__ == "__main__":
    sys.exit(main())
