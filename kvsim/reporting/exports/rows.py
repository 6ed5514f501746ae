"""Rows of tables, some at a time where they lie in files, in plain Python numbers."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kvsim.metrics.tables import slices


def rows(table: Mapping[str, Sequence[Any]], columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """These columns of a table, row by row."""
    for part in slices(table, columns):
        yield from zip(*(_listed(part[name]) for name in columns), strict=True)


def named_rows(table: Mapping[str, Sequence[Any]], columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The same by name."""
    for row in rows(table, columns):
        yield dict(zip(columns, row, strict=True))


def _listed(values: Any) -> Sequence[Any]:
    listed: Sequence[Any] = values.tolist() if hasattr(values, "tolist") else values
    return listed
