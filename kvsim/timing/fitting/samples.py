"""Tables of measured kernels as samples: one family on one GPU, with shapes, seconds and the groups that hold out.

Known tables are those of `kernel_*.csv` and `infersim_*.csv` (aiconfigurator, InferSim) and of Vidur's profiles;
`read_folder` takes any subset of them. Every row is used or counted as skipped with its reason.
"""

import gzip
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kvsim.errors import InputError
from kvsim.timing.families.interface import Column, Rows

if TYPE_CHECKING:
    from pandas import DataFrame

FEWEST_ROWS = 8
"""Fewer rows of one family on one GPU say less than the other GPUs do: no fit."""


@dataclass(frozen=True)
class Sample:
    """Measured rows of one family on one GPU. `groups` names the shape that is held out together; `source` the file."""

    source: str
    gpu: str
    family: str
    rows: Rows
    seconds: Column
    groups: npt.NDArray[np.str_]

    def __len__(self) -> int:
        return len(self.seconds)

    def where(self, mask: npt.NDArray[np.bool_]) -> "Sample":
        """The rows that `mask` keeps."""
        rows = {name: column[mask] for name, column in self.rows.items()}
        return Sample(self.source, self.gpu, self.family, rows, self.seconds[mask], self.groups[mask])


@dataclass
class Folder:
    """What a folder holds: samples, rows in all, rows left out by reason, a hash of each file that was read."""

    samples: list[Sample] = field(default_factory=list)
    rows: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    hashes: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """One kind of file: its columns, the column of the measured time with its seconds, and how it becomes samples."""

    columns: tuple[str, ...]
    time: tuple[str, ...]
    seconds: float
    split: Callable[[str, "DataFrame", float], Iterator[Sample]]


def find(folder: Path, name: str) -> Path | None:
    """The file of that name in `folder` or one below it, plain or gzipped."""
    for place in (folder, folder / "measured", folder / "vidur_profiles"):
        for candidate in (place / name, place / f"{name}.gz"):
            if candidate.is_file():
                return candidate
    return None


def read_table(path: Path, columns: Sequence[str], times: Sequence[str]) -> "DataFrame":
    """The table at `path`. Raises InputError naming the file and what is wrong: columns, or times that cannot be."""
    import pandas as pd  # late: only calibration and validation read tables

    try:
        table = pd.read_csv(path)
    except (OSError, ValueError, UnicodeDecodeError, EOFError, gzip.BadGzipFile) as error:
        raise InputError(f"{path}: cannot be read as a table ({error}); give a CSV with a head") from None
    missing = [column for column in (*columns, *times) if column not in table.columns]
    if missing:
        raise InputError(f"{path}: has no column {missing[0]}; needed are {', '.join((*columns, *times))}")
    if not len(table):
        raise InputError(f"{path}: has a head and no row; give one measurement a row")
    for column in times:
        values = pd.to_numeric(table[column], errors="coerce")
        wrong = (values <= 0) | (values.isna() & table[column].notna()) | np.isinf(values)
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise InputError(
                f"{path}, row {row + 2}: {column} is {table[column].iloc[row]}; a measured time is a number above 0"
            )
        table[column] = values
    return table


def file_hash(path: Path) -> str:
    """SHA-256 of the file's bytes, as calibrations name their inputs."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def column(values: Any) -> Column:
    """A column of numbers."""
    return np.asarray(values, dtype=np.float64)


def check_device(path: Path, table: "DataFrame", gpu: str | None) -> None:
    """Raises InputError where a table that is to be one GPU's holds several."""
    if gpu is None or "gpu" not in table.columns:
        return
    found = sorted(set(table["gpu"].astype(str)))
    if len(found) > 1:
        raise InputError(f"{path}: mixes the devices {', '.join(found)}; a calibration of {gpu} is of one of them")
