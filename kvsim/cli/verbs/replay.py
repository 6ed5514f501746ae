"""`kvsim replay`: a recorded workload, step by step, and what differs from the real engine."""

import argparse
import json
import os
from collections.abc import Iterator
from typing import Any

FORM = "a case is an object of config and requests, or of config and ops"
LINES = "a recorded run has one JSON object a line"


def add(subparsers: Any) -> None:
    """Say what the verb takes."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "replay",
        help="replay an engine case step by step, and compare it with a recorded run",
        description="Run an engine case by steps, without a clock, and print one JSON line a step and a "
        "summary line; or compare them with those that the real engine left. Exit code 1: they differ.",
        allow_abbrev=False,
    )
    parser.add_argument("case", metavar="CASE.json", help="the workload: its config and its requests")
    parser.add_argument("-o", metavar="OUT.jsonl", dest="out", help="write the lines there, print none")
    parser.add_argument(
        "--against", metavar="RECORDED.jsonl", help="compare with these lines, print the first difference"
    )
    parser.set_defaults(execute=execute)


def execute(args: argparse.Namespace) -> int:
    """Replay; print, write or compare."""
    from pathlib import Path

    from kvsim.engine.replay import compare_records
    from kvsim.metrics.result import write_whole
    from kvsim.reporting.run_folder import check_file

    if args.out is not None:
        check_file(args.out)
    case = _case(args.case)
    recorded = None if args.against is None else list(_records(args.against))
    ours = _replayed(args.case, case)
    if args.out is not None:
        lines = list(ours)
        write_whole(Path(args.out), "".join(_line(record) for record in lines).encode())
        ours = iter(lines)
    if recorded is None:
        if args.out is None:
            for record in ours:
                print(_line(record), end="")
        return 0
    compared, difference = compare_records(ours, iter(recorded))
    if difference is not None:
        print(f"differs at {difference}")
        return 1
    print(f"equal: {compared - sum('summary' in record for record in recorded)} steps and the summary")
    return 0


def _replayed(path: str, case: dict[str, Any]) -> Iterator[dict[str, Any]]:
    from kvsim.engine.replay import replay
    from kvsim.errors import InputError

    try:
        yield from replay(case)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def _case(path: str) -> dict[str, Any]:
    from kvsim.errors import InputError

    try:
        case = json.loads(_text(path))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is not JSON ({error}); {FORM}") from error
    entries = "ops" if isinstance(case, dict) and "ops" in case else "requests"
    missing = [key for key in ("config", entries) if not isinstance(case, dict) or key not in case]
    if missing:
        raise InputError(f"{path}: has no {missing[0]!r}; {FORM}")
    return dict(case)


def _records(path: str) -> Iterator[dict[str, Any]]:
    from kvsim.errors import InputError

    lines = _text(path).splitlines()
    if not lines:
        raise InputError(f"{path}: is empty; {LINES}")
    for number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path}:{number}: is not JSON ({error}); {LINES}") from error
        if not isinstance(record, dict):
            raise InputError(f"{path}:{number}: is no JSON object; {LINES}")
        yield record


def _text(path: str) -> str:
    from kvsim.errors import InputError

    try:
        # Before it is opened: opening a pipe waits for somebody to write into it.
        if os.path.exists(path) and not os.path.isdir(path) and not os.path.isfile(path):
            raise InputError(f"{path}: is a device or a pipe; name a file")
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); name a file that can be") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 text; name a JSON file") from error


def _line(record: object) -> str:
    return json.dumps(record, separators=(",", ":")) + "\n"
