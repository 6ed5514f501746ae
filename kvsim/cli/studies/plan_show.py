"""A plan and a cliff for people to read: the answer first, a table in 80 columns, what to change, sources."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kvsim.cli.show import Justify, console, print_rows, print_text
from kvsim.reporting.finding import sources_of
from kvsim.reporting.plan.cliff_words import RULE, cliff_answer, cliff_columns
from kvsim.reporting.plan.summary import plan_summary
from kvsim.reporting.plan.table import Column, fitting, plan_columns
from kvsim.reporting.plan.words import advice_lines, answer, how, latency, notes, price_label, sources

if TYPE_CHECKING:
    from rich.console import Console

    from kvsim.study.planning.cliff import Cliff
    from kvsim.study.planning.plan import Plan


def print_plan(args: argparse.Namespace, plan: "Plan") -> None:
    """Print the answer, the candidates, what binds them, and where the numbers come from."""
    out = console(args)
    print_text(out, answer(plan), "bold")
    print_text(out, how(plan), "dim")
    name, _ = latency(plan, plan.rows[0])
    print_text(out, f"*: no other candidate that keeps up has less of both {price_label(plan)} and {name}.", "dim")
    out.print()
    columns = plan_columns(plan_summary(plan))
    _print_columns(args, out, columns)
    left_out = len(columns) - len(fitting(columns, out.width))
    if left_out:
        print_text(out, f"{left_out} more column{'s' * (left_out > 1)}: with --json, or a wider terminal", "dim")
    out.print()
    for line in advice_lines(plan):
        print_text(out, f"- {line}")
    _print_foot(out, notes(plan), sources(plan), plan.not_modelled)
    if args.folder is not None:
        print(f"written to {args.folder}")


def print_cliff(args: argparse.Namespace, cliff: "Cliff") -> None:
    """Print the marks, the rates, and where the numbers come from."""
    out = console(args)
    print_text(out, cliff_answer(cliff), "bold")
    print_text(out, RULE, "dim")
    out.print()
    _print_columns(args, out, cliff_columns(cliff))
    out.print()
    _print_foot(out, cliff.notes, sources_of(cliff.provenance, cliff.expected_error), cliff.not_modelled)
    if args.folder is not None:
        print(f"written to {args.folder}")


def _print_columns(args: argparse.Namespace, out: "Console", columns: Sequence[Column]) -> None:
    found = fitting(columns, out.width)
    last = len(found) - 1
    heads: list[tuple[str, Justify]] = [
        (heading, "left" if place in (0, last) else "right") for place, (heading, _) in enumerate(found)
    ]
    print_rows(args, heads, [list(row) for row in zip(*(cells for _, cells in found), strict=True)])


def _print_foot(out: "Console", notes: Sequence[str], sources: Sequence[str], gaps: Sequence[str]) -> None:
    for note in notes:
        print_text(out, f"note: {note}")
    for source in sources:
        print_text(out, source, "dim")
    if gaps:
        print_text(out, "not modelled:", "dim")
    for gap in gaps:
        print_text(out, f"- {gap}", "dim")
