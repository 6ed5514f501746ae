"""Columns as Arrow and Parquet know them. Loads pyarrow; import it late."""

from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from kvsim.metrics.columns import TYPES

_ARROW = {"int64": pa.int64(), "double": pa.float64(), "string": pa.string()}

SCHEMAS = {table: pa.schema([(name, _ARROW[kind]) for name, kind in types.items()]) for table, types in TYPES.items()}
"""The columns of every table, in their types."""


def as_arrow(table: str, columns: Mapping[str, Sequence[Any]]) -> pa.Table:
    """The columns of the table of this name; None becomes null."""
    schema = SCHEMAS[table]
    return pa.table(
        [pa.array(plain(columns[field.name]), type=field.type, from_pandas=True) for field in schema], schema=schema
    )


def plain(values: Sequence[Any]) -> Any:
    """Numbers in one buffer go over as such; anything else, with its Nones, as a list."""
    import numpy as np

    if isinstance(values, array):
        return np.frombuffer(values, dtype=values.typecode) if values else np.array([], dtype=values.typecode)
    return list(values) if isinstance(values, list | tuple) else np.asarray(values)


def opened(where: str | Path | IO[bytes], table: str) -> pq.ParquetWriter:
    """A Parquet file to write the table of this name into."""
    return pq.ParquetWriter(where, SCHEMAS[table], compression="zstd")
