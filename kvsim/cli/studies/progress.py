"""How far a study is: runs done, runs a second, and the time that the rest will take."""

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[int, int], None]
"""Told the runs that are done and the runs in all."""


@contextmanager
def study_bar(args: argparse.Namespace) -> Iterator[Progress | None]:
    """Show a bar while the body runs and take it away afterwards; None where nobody would see it."""
    if args.json or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, Task, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar
    from rich.text import Text

    class Rate(ProgressColumn):
        """Runs a second, of late; those that were done before do not count."""

        def render(self, task: Task) -> Text:
            return Text("" if task.speed is None else f"{task.speed:.3g} runs/s")

    columns = (
        TextColumn("runs"),
        BarColumn(),
        MofNCompleteColumn(),
        Rate(),
        TextColumn("remaining"),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True, color_system=None if args.no_color else "auto")
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("runs", total=None)

        def show(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield show
