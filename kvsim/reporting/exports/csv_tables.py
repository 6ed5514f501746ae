"""Every table of a run as CSV, and the summary: one file each, columns with their units in the names as they are."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kvsim.metrics.columns import TABLES
from kvsim.metrics.result import Result
from kvsim.reporting.exports.interface import Export, Files, Options, Source
from kvsim.reporting.exports.rows import rows
from kvsim.reporting.run_folder import folder_names

SUMMARY_FILE = "summary.csv"


def _files(source: Source, options: Options) -> Files:
    yield SUMMARY_FILE, _summary(source.results)
    alone = len(source.results) == 1
    names = folder_names([result.name for result in source.results])
    for result, folder in zip(source.results, names, strict=True):
        for table in TABLES:
            if table in result.tables:
                yield f"{table}.csv" if alone else f"{folder}/{table}.csv", _table(result, table)


def _summary(results: Sequence[Result]) -> Iterator[str]:
    """A row for each number of the metrics, by its dotted key, with a column for each run."""
    flat = [dict(_numbers(result.metrics)) for result in results]
    yield _line(["metric", *(result.name for result in results)])
    for key in dict.fromkeys(key for numbers in flat for key in numbers):
        yield _line([key, *(numbers.get(key) for numbers in flat)])


def _numbers(metrics: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in metrics.items():
        key = f"{above}{name}"
        if isinstance(value, Mapping):
            yield from _numbers(value, f"{key}.")
        elif isinstance(value, list | tuple):
            yield from _numbers(dict(enumerate(value)), f"{key}.")  # type: ignore[arg-type]
        else:
            yield key, value


def _table(result: Result, table: str) -> Iterator[str]:
    columns = tuple(TABLES[table].columns)
    yield _line(columns)
    yield from map(_line, rows(result.tables[table], columns))


def _line(cells: Iterable[object]) -> str:
    """One line; what does not exist is an empty cell, and a number has all its digits."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(["" if cell is None else cell for cell in cells])
    return text.getvalue()


CSV = Export(
    name="csv",
    meaning="a folder with every table as CSV, and summary.csv",
    files=_files,
    single=False,
)
