"""The folder a run leaves: the scenario, the summary, the tables, and a figure of the memory over time."""

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from kvsim.errors import InputError
from kvsim.metrics.result import Result, to_json, write_whole
from kvsim.reporting.comparison import comparison_summary

FIGURE = "memory_over_time"


def check_writable(folder: str | Path, option: str = "-o") -> Path:
    """Make sure before a run that its folder can be written, without making it yet.

    Raises InputError that names the option, the folder and what is in the way.
    """
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{option} {folder}: is a file; name a folder, new or old")
    nearest = folder.absolute()
    while not nearest.exists():
        nearest = nearest.parent
    if not nearest.is_dir():
        raise InputError(f"{option} {folder}: {nearest} is a file; name a folder that can be made")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise InputError(f"{option} {folder}: {nearest} cannot be written; name a folder that can be")
    return folder


def write_run(result: Result, folder: str | Path) -> list[Path]:
    """Write one run: what `Result.save` writes, and the figure as PNG and SVG. Returns the paths.

    A run without a pool, or in which no time passed, has no figure.
    """
    folder = Path(folder)
    written = result.save(folder)
    if result.metrics["pool_tokens"] and result.metrics["simulated_s"]:
        # Importing matplotlib takes most of a second, so it waits until a figure is really drawn.
        from kvsim.reporting.memory_over_time import memory_over_time
        from kvsim.reporting.style import save_figure

        written += save_figure(memory_over_time(result), folder, FIGURE)
    return written


def write_comparison(
    scenario: str,
    results: Sequence[Result],
    folder: str | Path,
    progress: Callable[[float, str], None] | None = None,
) -> list[Path]:
    """Write a comparison: `summary.json` of all variants, and a run folder for each under its name.

    `progress` is told the fraction written and what comes next. Returns the paths.
    """
    folder = Path(folder)
    summary = to_json(comparison_summary(scenario, results)).encode()
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for index, (result, name) in enumerate(zip(results, folder_names([r.name for r in results]), strict=True)):
        if progress:
            progress(index / len(results), f"writing {result.name}")
        written += write_run(result, folder / name)
    # Last, so that a summary stands only beside the whole of what it sums up.
    written.append(write_whole(folder / "summary.json", summary))
    return written


def folder_names(names: Sequence[str]) -> list[str]:
    """Turn names into names of folders, in order: letters, digits, `.-_` stay; none comes twice."""
    taken: list[str] = []
    for name in names:
        plain = re.sub(r"[^\w.-]+", "-", name).strip(".-") or "run"
        unique, number = plain, 2
        while unique.lower() in (other.lower() for other in taken):
            unique, number = f"{plain}-{number}", number + 1
        taken.append(unique)
    return taken
