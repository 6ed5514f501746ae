"""The tables of a run as Parquet files, written piece by piece while it goes on."""

import shutil
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from kvsim.metrics.columns import COLUMNS, TYPES
from kvsim.metrics.requests.records import Ended, Event, Loss
from kvsim.metrics.tables.interface import PIECE_ROWS, Dropped
from kvsim.metrics.tables.rows import MemoryRows, Table, event_rows, preemption_rows, request_rows, step_rows

if TYPE_CHECKING:
    from kvsim.metrics.tables.files import ById, InOrder

PART = ".part"
"""How the name of a file ends that is not whole yet."""

ASIDE = ".aside"
"""How that of one ends in which rows are put aside until they are sorted."""


def left_over(path: Path) -> bool:
    """A run that was killed has left this file, which the next one in its folder writes anew."""
    return path.name in {f".{name}.parquet{end}" for name in COLUMNS for end in (PART, ASIDE)}


class ParquetPieces:
    """Writes into `folder`, under hidden names; `FileTables.put` gives the files theirs.

    A context: what nobody has put anywhere by its end is taken away, and so is the folder if it was made for it.
    """

    rows = PIECE_ROWS

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)
        self._made: list[Path] = []
        self._files: dict[str, InOrder | ById] = {}
        self._memory: MemoryRows | None = None

    def requests(self, records: list[Ended]) -> None:
        """See `Pieces`."""
        self._add("requests", request_rows(records))

    def events(self, events: list[Event]) -> None:
        """See `Pieces`."""
        self._add("events", event_rows(events))

    def losses(self, losses: list[Loss]) -> None:
        """See `Pieces`."""
        self._add("preemptions", preemption_rows(losses))

    def steps(
        self, series: "array[int]", rests: Mapping[int, int], pool_slots: int, *, has_holes: bool, last: bool
    ) -> None:
        """See `Pieces`."""
        if self._memory is None:
            self._memory = MemoryRows(pool_slots, has_holes=has_holes)
        self._add("steps", step_rows(series))
        self._add("memory", self._memory.of(series, rests, last=last))

    def of_replica(self, number: int) -> Dropped:
        """See `Pieces`; a fleet is recorded replica by replica, and has no files of its own."""
        return Dropped().of_replica(number)

    def tables(self) -> "FileTables":
        """See `Pieces`. Ends the files."""
        for name in COLUMNS:
            self._file(name).close()
        return FileTables({name: self._hidden(name, PART) for name in COLUMNS})

    def __enter__(self) -> "ParquetPieces":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name, file in self._files.items():
            file.give_up()
            self._hidden(name, PART).unlink(missing_ok=True)
        for folder in reversed(self._made):
            with suppress(OSError):  # a run lies in it
                folder.rmdir()

    def _add(self, name: str, rows: Table) -> None:
        if next(iter(rows.values())):
            self._file(name).add(rows)

    def _file(self, name: str) -> "InOrder | ById":
        if name not in self._files:
            from kvsim.metrics.tables.files import ById, InOrder

            self._make_folder()
            path = self._hidden(name, PART)
            aside = self._hidden(name, ASIDE)
            self._files[name] = ById(name, path, aside) if name == "requests" else InOrder(name, path)
        return self._files[name]

    def _hidden(self, name: str, end: str) -> Path:
        return self._folder / f".{name}.parquet{end}"

    def _make_folder(self) -> None:
        missing = [folder for folder in (self._folder, *self._folder.parents) if not folder.exists()]
        for folder in reversed(missing):
            folder.mkdir(exist_ok=True)
            self._made.append(folder)


class FileTables(Mapping[str, "FileTable"]):
    """Tables that lie in files."""

    def __init__(self, paths: Mapping[str, Path]) -> None:
        self._paths = dict(paths)

    def put(self, name: str, path: Path) -> Path:
        """Let the table of this name lie at `path`, whole or not at all. Returns the path."""
        here = self._paths[name]
        if here.suffix == PART and here.parent == path.parent:
            here.replace(path)
            self._paths[name] = path
        elif here != path:
            part = path.with_name(f".{path.name}{PART}")
            shutil.copyfile(here, part)
            part.replace(path)
        return path

    def __getitem__(self, name: str) -> "FileTable":
        return FileTable(self._paths[name], tuple(TYPES[name]))

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)


def slices(table: Mapping[str, Sequence[Any]], columns: Sequence[str]) -> Iterator[Mapping[str, Sequence[Any]]]:
    """These columns of a table, some rows at a time where it lies in a file, so that one may see all of a long one.

    None where it has no rows.
    """
    if isinstance(table, FileTable):
        return table.slices(columns)
    return iter([{column: table[column] for column in columns}] if len(table.get(columns[0], ())) else [])


class FileTable(Mapping[str, Sequence[Any]]):
    """One of them: a column is read whenever it is asked for, numbers as one buffer."""

    def __init__(self, path: Path, names: tuple[str, ...]) -> None:
        self._path = path
        self._names = names

    def __getitem__(self, column: str) -> Sequence[Any]:
        if column not in self._names:
            raise KeyError(column)
        from kvsim.metrics.tables.files import column_of

        return column_of(self._path, column)

    def slices(self, columns: Sequence[str]) -> "Iterator[Mapping[str, Sequence[Any]]]":
        """These columns, so many rows at a time as lie together."""
        from kvsim.metrics.tables.files import slices_of

        return slices_of(self._path, columns)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
