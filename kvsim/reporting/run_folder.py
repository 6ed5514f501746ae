"""The folder a run leaves: the scenario, the summary, the tables, figures, and a README that says what is what."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from kvsim.errors import InputError
from kvsim.metrics.columns import TABLES
from kvsim.metrics.result import GAPS, KV_EVENTS, Result, to_json, write_whole
from kvsim.metrics.tables import left_over
from kvsim.reporting.comparison import comparison_summary
from kvsim.reporting.figures.interface import has_memory

if TYPE_CHECKING:
    from kvsim.study.replication.study import Study

Progress = Callable[[float, str], None]

SUMMARY = "summary.json"
README = "README.md"
FIGURE = "memory_over_time"
MAP_FIGURE = "memory_map"
TREE_FIGURE = "prefix_tree"
COMPARISON_FIGURE = "comparison"
TRADE_OFF_FIGURE = "trade_off"
INTERVALS_FIGURE = "intervals"

FILES = {
    "scenario.yaml": "the scenario as it was given, with the files it extends",
    "resolved.json": "every setting with its value and where it came from: a line of a file, `--set`, the engine's "
    "profile, or the default",
    SUMMARY: "the numbers: seed, version, provenance, what is not modelled, metrics, pools",
    KV_EVENTS: "what a router would hear of the prefix cache, a line for each moment at which it changed: vLLM's "
    "BlockStored and BlockRemoved as JSON; a hash is gone when it was removed as often as it was stored; "
    "`token_ids` is empty, since tokens have no values here, and `runs` says what the blocks hold: [stream, offset, "
    "tokens]",
    GAPS: "every gap between two tokens of a sequence: the sum and the longest, and how many fell into each bucket of "
    "at most 0.4 % by the shortest gap in it, all in picoseconds",
    f"{FIGURE}.png": "whose the KV memory is over time, and the requests running and waiting",
    f"{FIGURE}.svg": "the same figure, to be scaled",
    f"{MAP_FIGURE}.png": "what lies at which address of the pool when, where addresses were recorded",
    f"{MAP_FIGURE}.svg": "the same figure, to be scaled",
    f"{TREE_FIGURE}.png": "the prefixes that prompts share, with their sizes and the requests that begin with them, "
    "where prompts were recorded",
    f"{TREE_FIGURE}.svg": "the same figure, to be scaled",
    f"{COMPARISON_FIGURE}.png": "the KV memory of all variants over time, side by side",
    f"{COMPARISON_FIGURE}.svg": "the same figure, to be scaled",
    f"{TRADE_OFF_FIGURE}.png": "latencies against the size of the pool, where the pools of the variants differ",
    f"{TRADE_OFF_FIGURE}.svg": "the same figure, to be scaled",
    f"{INTERVALS_FIGURE}.png": "what each variant has, with intervals, of all replications",
    f"{INTERVALS_FIGURE}.svg": "the same figure, to be scaled",
}
"""What each file holds, beside the tables."""

LONGEST_NAME = 60
"""Characters of the name of a folder: at four bytes each and with a number, what every file system takes (255)."""


def check_run_folder(folder: str | Path, option: str = "-o") -> Path:
    """Make sure before a run that it may write into this folder: one that can be made, is empty, or holds a run.

    Raises InputError that names the option, the folder and what is in the way.
    """
    folder = check_writable(folder, option)
    if folder.is_dir() and not all(map(left_over, folder.iterdir())) and not _holds_a_run(folder):
        raise InputError(
            f"{option} {folder}: is not empty and holds no run (no {SUMMARY}); name a new folder, an empty one, or "
            "one that kvsim wrote"
        )
    return folder


def check_writable(folder: str | Path, option: str = "-o") -> Path:
    """Make sure before a run that its folder can be written: what is missing of it is made and taken away again.

    Raises InputError that names the option, the folder and what is in the way.
    """
    if not os.fspath(folder):
        raise InputError(f"{option} '': is no name; name a folder, new or old")
    folder = Path(folder)
    made: list[Path] = []
    try:
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{option} {folder}: is a file; name a folder, new or old")
        nearest = folder.absolute()
        missing = []
        while not nearest.exists():
            missing.append(nearest)
            nearest = nearest.parent
        if not nearest.is_dir():
            raise InputError(f"{option} {folder}: {nearest} is a file; name a folder that can be made")
        if not os.access(nearest, os.W_OK | os.X_OK):
            raise InputError(f"{option} {folder}: {nearest} cannot be written; name a folder that can be")
        for part in reversed(missing):
            if part.exists():  # `new/..`, once `new` is there
                continue
            part.mkdir()
            made.append(part)
    except OSError as error:
        raise InputError(f"{option} {folder}: cannot be made ({error.strerror}); name a folder that can") from None
    finally:
        for part in reversed(made):
            with suppress(OSError):  # somebody else has put something there by now
                part.rmdir()
    return folder


def check_file(path: str | Path, option: str = "-o") -> Path:
    """Make sure before any work that a file can be written there: in place of an old one or as a new one.

    Raises InputError that names the option, the file and what is in the way.
    """
    if not os.fspath(path):
        raise InputError(f"{option} '': is no name; name a file, new or old")
    path = Path(path)
    try:
        if path.exists() and not path.is_file():
            raise InputError(f"{option} {path}: is no file but a folder or a device; name a file, new or old")
    except OSError as error:
        raise InputError(f"{option} {path}: cannot be made ({error.strerror}); name a file that can") from None
    check_writable(path.parent, option)
    return path


def write_run(
    result: Result, folder: str | Path, progress: Progress | None = None, *, figures: bool = True
) -> list[Path]:
    """Write one run: what `Result.save` writes, the figures as PNG and SVG, and the README. Returns the paths.

    A run without a pool, or in which no time passed, has no figure; without `figures` somebody else draws them.
    `progress` is told once that this goes on.
    """
    folder = Path(folder)
    if progress:
        progress(1.0, f"writing {result.name}")
    written = result.save(folder)
    for table, stem in (("addresses", MAP_FIGURE), ("prompts", TREE_FIGURE)):
        if table not in result.tables:
            for form in ("png", "svg"):  # an earlier run may have left one there
                (folder / f"{stem}.{form}").unlink(missing_ok=True)
    if figures and has_memory(result):
        # Importing matplotlib takes most of a second, so it waits until a figure is really drawn.
        from kvsim.reporting.figures.memory.over_time import memory_over_time
        from kvsim.reporting.style import save_figure

        written += save_figure(memory_over_time(result), folder, FIGURE)
        if "addresses" in result.tables:
            from kvsim.reporting.figures.memory.address_map import memory_map

            written += save_figure(memory_map(result), folder, MAP_FIGURE)
        if "prompts" in result.tables:
            from kvsim.reporting.figures.prefix.tree_figure import prefix_tree

            written += save_figure(prefix_tree(result), folder, TREE_FIGURE)
    names = [path.name for path in written]
    return [*written, write_whole(folder / README, readme(result.name, names).encode())]


def write_comparison(
    scenario: str,
    results: Sequence[Result],
    folder: str | Path,
    progress: Progress | None = None,
    study: "Study | None" = None,
    *,
    figures: bool = True,
) -> list[Path]:
    """Write a comparison: a run folder for each variant under its name, and for all of them `summary.json`, the
    figure that shows them side by side, and the README; with a study, the figure of its intervals too.

    `progress` is told the fraction written and what comes next; without `figures` somebody else draws them. Returns the
    paths.
    """
    folder = Path(folder)
    summary = to_json(comparison_summary(scenario, results, study)).encode()
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    parts = len(results) + 1
    names = folder_names([r.name for r in results])
    for index, (result, name) in enumerate(zip(results, names, strict=True)):
        if progress:
            progress(index / parts, f"writing {result.name}")
        written += write_run(result, folder / name, figures=figures)
    own: list[Path] = []
    if figures and any(map(has_memory, results)):
        from kvsim.reporting.figures.latency.trade_off import has_trade_off, trade_off
        from kvsim.reporting.figures.memory.side_by_side import memory_side_by_side
        from kvsim.reporting.style import save_figure

        if progress:
            progress(len(results) / parts, "writing the comparison")
        own = save_figure(memory_side_by_side([r for r in results if has_memory(r)]), folder, COMPARISON_FIGURE)
        if has_trade_off(results):
            own += save_figure(trade_off(results), folder, TRADE_OFF_FIGURE)
    for form in ("png", "svg"):  # an earlier study may have left one there
        (folder / f"{INTERVALS_FIGURE}.{form}").unlink(missing_ok=True)
    if study is not None:
        from kvsim.reporting.study.figure import has_intervals, study_figure
        from kvsim.reporting.style import save_figure

        if has_intervals(study):
            own += save_figure(study_figure(study, results), folder, INTERVALS_FIGURE)
    text = readme(scenario, [path.name for path in own] + [SUMMARY], list(zip(names, results, strict=True)))
    own.append(write_whole(folder / README, text.encode()))
    # Last, so that a summary stands only beside the whole of what it sums up.
    return [*written, *own, write_whole(folder / SUMMARY, summary)]


def readme(name: str, files: Sequence[str], runs: Sequence[tuple[str, Result]] = ()) -> str:
    """Return the README of a folder: one line for each of its files and run folders, and every table's columns.

    `files` are names without folder, `runs` the run folders below by name.
    """
    lines = [f"# {name}", "", f"Written by kvsim: {'a comparison' if runs else 'one run'}.", ""]
    lines += [f"- `{folder}/`: the run {result.name}, with a README of its own" for folder, result in runs]
    lines += [f"- `{file}`: {FILES[file]}" for file in FILES if file in files]
    tables = [table for table in TABLES if f"{table}.parquet" in files]
    lines += [f"- `{table}.parquet`: {TABLES[table].row.partition('; ')[0].partition('. ')[0]}" for table in tables]
    for table in tables:
        lines += ["", *_columns(table)]
    return "\n".join(lines) + "\n"


def _columns(table: str) -> Iterator[str]:
    form = TABLES[table]
    yield f"## {table}.parquet"
    yield ""
    yield f"{form.row[0].upper()}{form.row[1:]}."
    yield ""
    yield "| column | type | meaning and unit |"
    yield "| --- | --- | --- |"
    for name, column in form.columns.items():
        yield f"| `{name}` | {column.type} | {column.meaning} |"


def folder_names(names: Sequence[str]) -> list[str]:
    """Turn names into names of folders, in order: letters, digits, `.-_` stay; none comes twice.

    None is that of a file that a run or a comparison leaves, or longer than a file system takes.
    """
    taken: list[str] = []
    own = (README, *FILES, *(f"{table}.parquet" for table in TABLES))
    for name in names:
        plain = re.sub(r"[^\w.-]+", "-", name)[:LONGEST_NAME].strip(".-") or "run"
        unique, number = plain, 2
        while unique.lower() in (other.lower() for other in (*taken, *own)):
            unique, number = f"{plain}-{number}", number + 1
        taken.append(unique)
    return taken


def _holds_a_run(folder: Path) -> bool:
    """A run or a comparison wrote here, even one that was interrupted before its own summary."""
    return (folder / SUMMARY).exists() or any(folder.glob(f"*/{SUMMARY}"))
