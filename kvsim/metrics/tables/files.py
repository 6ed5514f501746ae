"""Files that grow by pieces: rows in the order in which they come, or sorted by id. Loads pyarrow; import it late."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kvsim.metrics.tables.arrow import SCHEMAS, as_arrow, opened
from kvsim.metrics.tables.interface import PIECE_ROWS
from kvsim.metrics.tables.rows import Table


class InOrder:
    """A table whose rows come in their order. It writes whole row groups, so that the pieces leave no trace."""

    def __init__(self, name: str, where: Path | IO[bytes]) -> None:
        self._name = name
        self._out = opened(where, name)
        self._held = SCHEMAS[name].empty_table()
        self._written = False

    def add(self, rows: Table) -> None:
        """These come next."""
        self.add_arrow(as_arrow(self._name, rows))

    def add_arrow(self, rows: pa.Table) -> None:
        """These come next."""
        held = pa.concat_tables([self._held, rows])
        whole = held.num_rows - held.num_rows % PIECE_ROWS
        for start in range(0, whole, PIECE_ROWS):
            self._write(held.slice(start, PIECE_ROWS))
        # A slice would keep alive what it is a slice of.
        self._held = held.slice(whole).combine_chunks()

    def close(self) -> None:
        """All have come."""
        if self._out.is_open:
            if self._held.num_rows or not self._written:
                self._write(self._held)
            self._out.close()

    def give_up(self) -> None:
        """Whatever was written does not count."""
        self._out.close()

    def _write(self, rows: pa.Table) -> None:
        self._out.write_table(rows.combine_chunks())
        self._written = True


class ById:
    """A table of requests, which come as they end: each piece is put aside, and all are merged at the end.

    Merging holds only as many rows as have ended while one with a lower id was on its way.
    """

    def __init__(self, name: str, path: Path, aside: Path) -> None:
        self._name = name
        self._path = path
        self._aside_path = aside
        self._aside: pa.ipc.RecordBatchFileWriter | None = None
        self._least: list[int] = []
        """The lowest id of each piece put aside."""

    def add(self, rows: Table) -> None:
        """These have ended; they are in the order of id."""
        if self._aside is None:
            self._aside = pa.ipc.new_file(self._aside_path, SCHEMAS[self._name])
        [batch] = as_arrow(self._name, rows).to_batches()
        self._aside.write_batch(batch)
        self._least.append(rows["id"][0])

    def close(self) -> None:
        """All have ended."""
        if self._aside is None:
            InOrder(self._name, self._path).close()
            return
        self._aside.close()
        out, held = InOrder(self._name, self._path), SCHEMAS[self._name].empty_table()
        order = sorted(range(len(self._least)), key=self._least.__getitem__)
        with pa.OSFile(str(self._aside_path)) as file:
            pieces = pa.ipc.open_file(file)
            for place, number in enumerate(order):
                held = pa.concat_tables([held, pa.Table.from_batches([pieces.get_batch(number)])]).sort_by("id")
                if place + 1 < len(order):
                    # Whoever is below the lowest id of the pieces to come is in its place.
                    below = pc.less(held["id"], self._least[order[place + 1]])
                    out.add_arrow(held.filter(below))
                    held = held.filter(pc.invert(below))
        out.add_arrow(held)
        out.close()
        self._aside_path.unlink()

    def give_up(self) -> None:
        """Take away what was put aside."""
        if self._aside is not None:
            self._aside.close()
            self._aside_path.unlink(missing_ok=True)


def column_of(path: Path, column: str) -> Sequence[Any]:
    """A column of a Parquet file: numbers of which none is missing as one buffer, anything else as a list."""
    return _plain(pq.read_table(path, columns=[column])[column])


def slices_of(path: Path, columns: Sequence[str]) -> Iterator[Mapping[str, Sequence[Any]]]:
    """Columns of a Parquet file, a row group at a time."""
    with pq.ParquetFile(path) as file:
        for group in range(file.num_row_groups):
            rows = file.read_row_group(group, columns=list(columns), use_threads=False)
            if rows.num_rows:
                yield {column: _plain(rows[column]) for column in columns}


def _plain(values: pa.ChunkedArray) -> Sequence[Any]:
    if values.null_count or not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
        missing: list[Any] = values.to_pylist()
        return missing
    numbers: Sequence[Any] = values.to_numpy()
    return numbers
