"""Printing for people: tables that stay readable at 80 columns, and the notes below them."""

import argparse
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from kvsim.metrics.result import Result, to_json
from kvsim.reporting.comparison import Group, Row, comparison_table
from kvsim.reporting.finding import finding, ledger, legend, measured, shared, shared_notes, sources
from kvsim.reporting.tenants import tenant_table
from kvsim.reporting.ttft import ttft_line

if TYPE_CHECKING:
    from rich.console import Console

Justify = Literal["left", "right"]

HEADER_LETTERS = 11
"""A column's name is broken at its hyphens beyond this, so that four columns fit in 80."""


def console(args: argparse.Namespace) -> "Console":
    """Standard output as rich sees it: colours and weights only on a terminal, and none with `--no-color`."""
    from rich.console import Console

    class Output(Console):
        def on_broken_pipe(self) -> None:
            # Rich would end the process with exit code 1; a reader that has seen enough is no failure.
            raise BrokenPipeError

    return Output(color_system=None if args.no_color else "auto", highlight=False, soft_wrap=False)


def print_json(value: object) -> None:
    """Print one JSON value, and nothing else."""
    print(to_json(value), end="")


def print_results(args: argparse.Namespace, results: Sequence[Result]) -> None:
    """Print the finding, the table with one column per result, and where the numbers come from."""
    out = console(args)
    print_text(out, finding(results))
    for line in legend(results) + shared([measured(result) for result in results], results):
        print_text(out, line, "dim")
    groups = comparison_table(results)
    for first, last in _column_runs(groups, [result.name for result in results], out.width):
        out.print()
        out.print(_results_table(groups, [result.name for result in results], first, last))
    if len(results) == 1:
        _print_parts(out, results[0])
    out.print()
    print_sources(out, results)
    if len(results) > 1:
        # The table has scrolled away by now.
        out.print()
        print_text(out, f"In short: {finding(results)}")


def _print_parts(out: "Console", result: Result) -> None:
    """Print one run in its parts: what each tenant got, and what the time to first token is made of."""
    tenants = tenant_table(result)
    if tenants is not None:
        for first, last in _column_runs(tenants.groups, tenants.names, out.width):
            out.print()
            out.print(_results_table(tenants.groups, tenants.names, first, last))
        print_text(out, tenants.note, "dim")
    out.print()
    for line in ttft_line(result):
        print_text(out, line)


def print_sources(out: "Console", results: Sequence[Result]) -> None:
    """Print the notes of some results, where their numbers come from, and what is not modelled."""
    for note in shared_notes(results):
        print_text(out, f"note: {note}")
    for source in shared([sources(r) for r in results], results) + shared([ledger(r) for r in results], results):
        print_text(out, source, "dim")
    if any(_has_a_better_ttft(result) for result in results):
        print_text(
            out,
            "for TTFT: --set timing=calibrated, whose error is smaller for nearly all models, GPUs and engines",
            "dim",
        )
    gaps = shared([r.not_modelled for r in results], results)
    if gaps:
        print_text(out, "not modelled:", "dim")
    for gap in gaps:
        print_text(out, f"- {gap}", "dim")


def _has_a_better_ttft(result: Result) -> bool:
    """Step times are estimated from data sheets alone, and half of the TTFTs are off by half and more."""
    return result.provenance.get("timing") == "datasheet" and (result.expected_error.get("ttft_median") or 0) >= 0.5


def print_text(out: "Console", text: str, style: str | None = None, indent: str = "") -> None:
    """Print one paragraph, wrapped to the width; the lines after the first stand two to the right."""
    hanging = indent + "  " if text.startswith(("- ", "note: ")) or style else indent
    for line in textwrap.wrap(
        text, out.width, initial_indent=indent, subsequent_indent=hanging, break_on_hyphens=False
    ):
        out.print(line, style=style, markup=False)


def print_rows(args: argparse.Namespace, columns: Sequence[tuple[str, Justify]], rows: Sequence[Sequence[str]]) -> None:
    """Print a plain table; each column is a heading and `left` or `right`."""
    out = console(args)
    table = _table()
    for index, (heading, justify) in enumerate(columns):
        # Names are copied from the first column, and a number in two pieces is two numbers.
        whole = index == 0 or justify == "right"
        table.add_column(_text(heading), justify=justify, vertical="top", overflow="fold", no_wrap=whole)
    for row in rows:
        table.add_row(*(_text(cell) for cell in row))
    out.print(table)


def print_facts(args: argparse.Namespace, facts: Mapping[str, object]) -> None:
    """Print the facts of one thing below each other, names as given; those that say nothing are left out."""
    out = console(args)
    table = _table()
    table.show_header = False
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts.items():
        if value not in (None, "", (), []):
            table.add_row(_text(name), _text(_fact(value)))
    out.print(table)


def _results_table(groups: Sequence[Group], names: Sequence[str], first: int, last: int) -> Any:
    table = _table()
    table.add_column("", no_wrap=True)
    for name in names[first:last]:
        table.add_column(_text(_header(name)), justify="right", vertical="bottom", overflow="fold")
    for index, group in enumerate(groups):
        if index:
            table.add_row()
        table.add_row(_text(group.heading, "bold"))
        for row in group.rows:
            table.add_row(_text(_label(row)), *(_text(row.text(column)) for column in range(first, last)))
    return table


def _label(row: Row) -> str:
    return f"  {row.label}, {row.unit}" if row.unit else f"  {row.label}"


def _column_runs(groups: Sequence[Group], names: Sequence[str], width: int) -> list[tuple[int, int]]:
    """Which results share a table, as (first, last + 1): as many as fit side by side, at least one."""
    rows = [row for group in groups for row in group.rows]
    padding = 2
    labels = max(len(_label(row)) for row in rows)
    labels = max(labels, *(len(group.heading) for group in groups)) + padding
    runs, first, used = [], 0, labels
    for index, name in enumerate(names):
        lines = _header(name).split("\n")
        needed = max(len(text) for text in [*lines, *(row.text(index) for row in rows)]) + padding
        if index > first and used + needed > width:
            runs.append((first, index))
            first, used = index, labels
        used += needed
    return [*runs, (first, len(names))]


def _header(name: str) -> str:
    return "\n".join(textwrap.wrap(name, HEADER_LETTERS)) or name


def _fact(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list | tuple):
        return "\n".join(f"- {item}" for item in value)
    return str(value)


def _table() -> Any:
    from rich import box
    from rich.table import Table

    return Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 0, 0, 1))


def _text(text: str, style: str = "") -> Any:
    # Names come from users: `[bold]` in one is text, no markup.
    from rich.text import Text

    return Text(text, style=style)
