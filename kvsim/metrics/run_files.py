"""The files of a run folder, read back: each that is missing, damaged or older is named in one message."""

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kvsim.errors import InputError
from kvsim.metrics.columns import TYPES
from kvsim.metrics.histogram import DurationHistogram
from kvsim.metrics.tables import FileTables

OF_A_RUN = ("name", "seed", "version", "provenance", "not_modelled", "pools")
"""What the summary of every run holds beside its metrics."""

_RIGHT = "a run folder is what `kvsim run -o DIR` writes"


def read_object(path: Path, right: str = _RIGHT) -> dict[str, Any]:
    """Read a JSON object of a folder that kvsim wrote. Raises InputError; `right` says what could be read instead."""
    try:
        value = json.loads(read_bytes(path, right), parse_constant=_no_number)
    except ValueError as error:
        raise InputError(f"{path}: is not JSON ({error}); write the folder again") from error
    if not isinstance(value, dict):
        raise InputError(f"{path}: holds a {type(value).__name__}, not an object; write the folder again")
    return value


@contextmanager
def written_by(kind: str, path: Path) -> Iterator[None]:
    """Take what a file holds for what `kind` (a comparison, say) writes there. Raises InputError where it is not."""
    try:
        yield
    except (AttributeError, KeyError, TypeError) as error:
        raise InputError(
            f"{path}: is not what {kind} writes there ({type(error).__name__}: {error}); write the folder again"
        ) from error


def _no_number(text: str) -> None:
    """Python reads NaN and infinities, which JSON does not have."""
    raise ValueError(f"{text} is no JSON")


def read_summary(path: Path, schema: int) -> dict[str, Any]:
    """Read the summary of one run, of this schema. Raises InputError."""
    summary = read_object(path)
    if summary.get("schema") != schema:
        raise InputError(f"{path}: schema is {summary.get('schema')!r}; this version reads {schema}")
    if "metrics" not in summary:
        raise InputError(f"{path}: holds no metrics of one run; name the sub-folder of a variant")
    strange = [name for name in OF_A_RUN if name not in summary]
    strange += [] if isinstance(summary["metrics"], dict) else ["metrics"]
    if strange:
        raise InputError(f"{path}: {strange[0]} is not what a run writes there; write the run folder again")
    return summary


def read_resolved(path: Path) -> dict[str, Any]:
    """Read the settings of a run, each with its value and source. Raises InputError."""
    resolved = read_object(path)
    strange = [key for key, setting in resolved.items() if not isinstance(setting, dict)]
    if strange:
        raise InputError(f"{path}: {strange[0]} is no setting with its value and source; write the run folder again")
    return resolved


def read_gaps(path: Path) -> DurationHistogram:
    """Read the histogram of gaps between tokens. Raises InputError."""
    told = read_object(path)
    try:
        return DurationHistogram.of(told)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: is no histogram of gaps; write the run folder again") from error


def read_text(path: Path) -> str:
    """Read a file of text. Raises InputError."""
    try:
        return read_bytes(path).decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 ({error.reason}); write the run folder again") from error


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


def read_parquet(name: str, path: Path) -> dict[str, Sequence[Any]]:
    """Read the table of this name as its columns. Raises InputError."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(io.BytesIO(read_bytes(path)))
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path}: is not a Parquet file ({error}); write the run folder again") from error
    columns: dict[str, Sequence[Any]] = table.to_pydict()
    foreign = [column for column in columns if column not in TYPES[name]]
    if foreign or not columns:
        what = f"has a column {foreign[0]}" if foreign else "has no columns"
        raise InputError(f"{path}: {what}, unlike the table {name} of a run; write the run folder again")
    return columns
