"""The progress bar: on standard error, and only where somebody sits in front of it."""

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[float, str], None]
"""Told the fraction done, from 0 to 1, and what is being done."""


@contextmanager
def progress_bar(args: argparse.Namespace) -> Iterator[Progress | None]:
    """Show a bar while the body runs and take it away afterwards; None where nobody would see it."""
    if args.json or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
    )
    console = Console(stderr=True, color_system=None if args.no_color else "auto")
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting", total=1.0)

        def show(fraction: float, text: str) -> None:
            bar.update(task, completed=fraction, description=text)

        yield show
