"""Printing a study: each metric with its intervals, differences and verdicts, in 80 columns."""

import argparse
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kvsim.cli.show import console, print_sources, print_text
from kvsim.metrics.result import Result
from kvsim.reporting.study.table import basis, in_short, rows

if TYPE_CHECKING:
    from kvsim.study.replication.study import Study

NAME_LETTERS = 16
"""A variant's name is broken beyond this, so that a row fits in 80 columns."""

LEGEND = (
    "Each verdict stands alone: where two variants are alike, one in twenty calls them different by chance. "
    "var: variance of the paired difference over that of an unpaired one; below 1 the common random numbers paid off, "
    "at 0.10 an unpaired comparison would need ten times the runs."
)


def print_study(args: argparse.Namespace, results: Sequence[Result], study: "Study") -> None:
    """Print what was found, the table of intervals, what to know of them, and where the numbers come from."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    out = console(args)
    for sentence in in_short(study):
        print_text(out, sentence)
    print_text(out, basis(study), "dim")
    print_text(out, LEGEND, "dim")
    out.print()
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 0, 0, 1))
    table.add_column("", overflow="fold")
    short = len(study.baseline) <= NAME_LETTERS
    for heading in ("estimate", f"to {study.baseline if short else 'the baseline'}"):
        table.add_column(Text(heading), justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("var", justify="right", no_wrap=True)
    for place, (metric, each) in enumerate(rows(study)):
        if place:
            table.add_row()
        table.add_row(Text(f"{metric.label}, {metric.unit}" if metric.unit else metric.label, "bold"))
        for row in each:
            name = "\n  ".join(textwrap.wrap(row.variant, NAME_LETTERS)) or row.variant
            table.add_row(Text(f"  {name}"), *map(Text, (row.value, row.difference, row.verdict, row.variance)))
    out.print(table)
    out.print()
    for note in study.notes:
        print_text(out, f"note: {note}")
    print_sources(out, results)
