"""`kvsim capacity --check-csv`: every row of a table of logged start-ups, planned and scored."""

import argparse
from collections.abc import Mapping
from typing import Any

from kvsim.cli.show import Justify


def check(args: argparse.Namespace) -> int:
    """Plan the table twice, once given its overheads and once from flags alone, and print rows and scores."""
    from kvsim.capacity.checking.rows import read_rows
    from kvsim.capacity.checking.scores import check_table
    from kvsim.cli.show import console, print_json, print_rows, print_text
    from kvsim.reporting.capacity import summary_lines

    found = check_table(read_rows(args.check_csv))
    if args.folder is not None:
        from kvsim.reporting.capacity import write_check

        write_check(found, args.folder)
    if args.expected is not None:
        _write_expected(args, found)
    if args.json:
        print_json(found)
        return 0
    out = console(args)
    for mode, part in found.items():
        print_text(out, f"{mode}:", "bold")
        columns: list[tuple[str, Justify]] = [("row", "left"), ("model", "left"), ("logged", "right")]
        columns += [("planned", "right"), ("error %", "right"), ("verdict", "left")]
        print_rows(args, columns, [_row(one) for one in part["rows"]])
        for line in summary_lines(part["summary"]):
            print_text(out, line)
        out.print()
    return 0


def _write_expected(args: argparse.Namespace, found: Mapping[str, Any]) -> None:
    """The data file from which plans take the error to expect of them."""
    from pathlib import Path

    from kvsim.capacity.answers.expected import table_of
    from kvsim.capacity.checking.scores import TIGHT_SHARE
    from kvsim.metrics.result import to_json, write_whole

    about = {"written_by": "kvsim capacity --check-csv --expected", "table": Path(args.check_csv).name}
    write_whole(Path(args.expected), to_json(table_of(found, TIGHT_SHARE) | about).encode())


def _row(one: Mapping[str, Any]) -> list[str]:
    logged, planned = one["logged"], one["predicted"] or {}
    error = one["error"].get("kv_tokens", one["error"].get("kv_memory"))
    return [
        one["id"],
        one["model"][:32],
        _number(logged["kv_tokens"]),
        _number(planned.get("kv_tokens")),
        "" if error is None else f"{100 * error:+.2f}",
        planned.get("verdict", "-"),
    ]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"
