"""Rows to Parquet: the same rows give the same bytes, whoever computed them and in whatever order. Loads pyarrow."""

import io
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kvsim.study.values import shown

_LARGEST = 2**63 - 1


def table_bytes(
    rows: Sequence[Mapping[str, Any]], *, metadata: Mapping[str, str], units: Mapping[str, str], texts: Collection[str]
) -> bytes:
    """A Parquet file of these rows in their order; columns stand in the order in which the rows name them first.

    A column holds whole numbers, numbers, truth values or, where its values are of several kinds, texts; one without
    any value holds numbers, or texts if it is among `texts`. `units` are written to the columns they
    name, `metadata` to the file.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    fields, columns = [], []
    for name in names:
        values = [row.get(name) for row in rows]
        kind = pa.string() if name in texts else _kind(values)
        told = [value if value is None or kind != pa.string() else shown(value) for value in values]
        fields.append(pa.field(name, kind, metadata={"unit": units[name]} if name in units else None))
        columns.append(pa.array(told, type=kind))
    schema = pa.schema(fields, metadata=dict(metadata))
    stream = io.BytesIO()
    pq.write_table(pa.table(columns, schema=schema), stream, compression="zstd")
    return stream.getvalue()


def _kind(values: Sequence[Any]) -> pa.DataType:
    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return pa.bool_()
    if kinds == {int} and all(abs(value) <= _LARGEST for value in values if value is not None):
        return pa.int64()
    if kinds <= {int, float} and not any(isinstance(v, int) and abs(v) > _LARGEST for v in values):
        return pa.float64()
    return pa.string()
