"""A trace on disk: a file or a folder, what it begins with, and its lines."""

import os
from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from pathlib import Path

from kvsim.errors import InputError
from kvsim.workload.readers.files import archive
from kvsim.workload.readers.files.head import Head, head_of_text
from kvsim.workload.readers.files.text import text_lines
from kvsim.workload.readers.interface import listed

_PARQUET_MAGIC = b"PAR1"
_START_LINES = 64
"""Lines of a document that are looked at to see what it is."""


class Source:
    """`name` is what messages call it. Opened anew for each pass; nothing is held but the head."""

    def __init__(self, path: Path, name: str) -> None:
        self.path = path
        self.name = name

    @cached_property
    def head(self) -> Head:
        """How it begins; InputError where it cannot be opened, is empty, or begins with a blank line."""
        if os.path.isdir(self.path):
            return Head("folder", names=tuple(sorted(os.listdir(self.path))))
        if os.path.isfile(self.path):
            with open(self.path, "rb") as file:
                if file.read(len(_PARQUET_MAGIC)) == _PARQUET_MAGIC:
                    return Head("parquet", names=_parquet_columns(self.path, self.name))
            if archive.is_tar(self.path):
                return Head("archive", names=archive.first_names(self.path, self.name))
        lines = text_lines(self.path, self.name)
        first_line = next(lines, "")
        if not first_line.strip():
            what = "the first line is blank; it must name the columns" if first_line else "the trace is empty"
            raise InputError(f"{self.name}: {what}")
        start = first_line if first_line.rstrip().endswith("}") else first_line + "".join(islice(lines, _START_LINES))
        return head_of_text(first_line, start)

    def lines(self) -> Iterator[str]:
        """The lines of a text file, ends included, one by one."""
        return text_lines(self.path, self.name)

    def parts(self, *endings: str) -> Iterator["Source"]:
        """The files of a folder whose names end so, by name; a file is its own only part."""
        if self.head.kind != "folder":
            yield self
            return
        for name in self.head.names:
            if name.endswith(endings):
                yield Source(self.path / name, os.path.join(self.name, listed([name])))


def _parquet_columns(path: Path, name: str) -> tuple[str, ...]:
    from pyarrow import ArrowException
    from pyarrow.parquet import read_schema

    try:
        return tuple(read_schema(path).names)
    except (ArrowException, OSError, ValueError) as error:
        raise damaged_parquet(name, error) from None


def damaged_parquet(place: str, error: Exception) -> InputError:
    """The error to raise where Parquet data cannot be read on; Arrow says why, perhaps over several lines."""
    why = listed([" ".join(str(error).split())])
    return InputError(f"{place}: the Parquet file is damaged or cut off ({why}); fetch the file again")
