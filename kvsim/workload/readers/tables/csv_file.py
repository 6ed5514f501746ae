"""CSV files by column names: cells row by row, with every way in which a row can be no row."""

import csv
from collections.abc import Iterator, Sequence
from typing import Protocol

from kvsim.workload.readers.interface import Intake, listed, shown
from kvsim.workload.readers.values import tokens
from kvsim.workload.readers.values.times import ps_of, why_no_time


class _CsvTable(Protocol):
    line_num: int

    def __iter__(self) -> Iterator[list[str]]: ...

    def __next__(self) -> list[str]: ...


class Cells:
    """The rows of a CSV file as lists of cells; `at` gives the place of a column in them."""

    def __init__(self, lines: Iterator[str], intake: Intake) -> None:
        self._table: _CsvTable = csv.reader(lines, strict=True)
        self._intake = intake
        try:
            self.names = [name.strip() for name in next(self._table, [])]
        except csv.Error as error:
            raise self._no_csv(error) from None
        self._known: set[str] = set()

    def at(self, column: str, needed: Sequence[str]) -> int:
        """Where a column is that must be there once; InputError if it is not."""
        self._known.add(column)
        if self.names.count(column) == 1:
            return self.names.index(column)
        what = "is there twice" if column in self.names else "is missing"
        raise self._intake.wrong(
            f"column {column} {what}; the header is {shown(','.join(self.names))} and needs {', '.join(needed)}"
        )

    def maybe_at(self, column: str) -> int | None:
        """Where a column is, if it is there."""
        self._known.add(column)
        return self.names.index(column) if column in self.names else None

    def rows(self) -> Iterator[list[str]]:
        """The rows in file order, as wide as the header; sets `intake.row` and `intake.line`."""
        intake = self._intake
        intake.ignored_columns = tuple(name for name in self.names if name not in self._known)
        try:
            yield from self._rows(intake)
        except csv.Error as error:
            raise self._no_csv(error) from None

    def _rows(self, intake: Intake) -> Iterator[list[str]]:
        table, width = self._table, len(self.names)
        row = 0
        blank_lines: list[int] = []
        for cells in table:
            if not cells:
                blank_lines.append(table.line_num)
                continue
            if blank_lines:
                # Only now is it known that these did not end the file, where blank lines do no harm.
                for line in blank_lines:
                    row += 1
                    intake.row, intake.line = row, line
                    intake.bad(None, "", "blank line", "remove it")
                blank_lines.clear()
            row += 1
            intake.row, intake.line = row, table.line_num
            if len(cells) == width:
                yield cells
            else:
                cut = ",".join(cells)
                intake.bad(None, cut, f"{len(cells)} columns, not {width}", f"write {listed(self.names)}")

    def _no_csv(self, error: csv.Error) -> Exception:
        return self._intake.wrong(
            f"line {self._table.line_num} is not CSV ({error}); close every quote, one call per line"
        )


def read_count(text: str, column: str, what: str, intake: Intake) -> int:
    """Tokens from 1 on, or 0 after the row was handed to `intake.bad`; `what` is "prompt" or "output"."""
    count = tokens.read_tokens(text)
    if not count:
        intake.bad(column, text, tokens.why_not(text, what), tokens.RIGHT)
    return count


def read_number_ps(text: str, column: str, unit_digits: int, right: str, intake: Intake) -> int | None:
    """Picoseconds of a number in units of 10^-`unit_digits` seconds; None after the row was handed to `intake.bad`."""
    time_ps = ps_of(text, unit_digits)
    if time_ps is None:
        intake.bad(column, text, why_no_time(text.strip()), right)
    return time_ps
