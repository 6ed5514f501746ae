"""The files of a run folder, read back: each that is missing, damaged or older is named in one message."""

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kvsim.errors import InputError
from kvsim.metrics.columns import TYPES
from kvsim.metrics.tables import FileTables

_RIGHT = "a run folder is what `kvsim run -o DIR` writes"


def read_object(path: Path, right: str = _RIGHT) -> dict[str, Any]:
    """Read a JSON object of a folder that kvsim wrote. Raises InputError; `right` says what could be read instead."""
    try:
        value = json.loads(read_bytes(path, right))
    except ValueError as error:
        raise InputError(f"{path}: is not JSON ({error}); write the folder again") from error
    if not isinstance(value, dict):
        raise InputError(f"{path}: holds a {type(value).__name__}, not an object; write the folder again")
    return value


def read_bytes(path: Path, right: str = _RIGHT) -> bytes:
    """Read a file whole. Raises InputError; `right` says what could be read instead."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); {right}") from error


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    """Read a file of one JSON value a line. Raises InputError."""
    try:
        return [json.loads(line) for line in read_bytes(path).splitlines()]
    except ValueError as error:
        raise InputError(f"{path}: is not JSON Lines ({error}); write the run folder again") from error


def tables_in(paths: Mapping[str, Path]) -> FileTables:
    """Tables that stay in their files; InputError unless all are there, whole, and have the columns of today."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for name, path in paths.items():
        try:
            there = pq.read_schema(path).names
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"{path}: is not a Parquet file ({error}); write the run folder again") from error
        missing = [column for column in TYPES[name] if column not in there]
        if missing:
            raise InputError(f"{path}: has no column {missing[0]}, as an older version wrote it; run it again")
    return FileTables(paths)


def read_parquet(path: Path) -> dict[str, Sequence[Any]]:
    """Read a table as its columns. Raises InputError."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(io.BytesIO(read_bytes(path)))
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path}: is not a Parquet file ({error}); write the run folder again") from error
    columns: dict[str, Sequence[Any]] = table.to_pydict()
    return columns
