"""A table as plain data: what a page sorts and a Markdown file lists."""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import NamedTuple


class Cell(NamedTuple):
    """What a cell shows, and the number that it is sorted by; None: it is sorted by its text, after all numbers."""

    text: str
    number: float | None = None


@dataclass(frozen=True)
class Body:
    """Rows that belong together, sorted among themselves, under one heading ("": none)."""

    heading: str
    rows: Sequence[Sequence[Cell]]


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """A table: its title, what to know of it, the heads of its columns, the first of which names the rows."""

    title: str
    columns: Sequence[str]
    bodies: Sequence[Body]
    note: str = ""

    @property
    def rows(self) -> list[Sequence[Cell]]:
        """All rows, whatever they belong to."""
        return [row for body in self.bodies for row in body.rows]

    @property
    def numeric(self) -> list[bool]:
        """Of each column whether any of its cells is a number; the first one names the rows and counts as none."""
        there = [any(row[place].number is not None for row in self.rows) for place in range(len(self.columns))]
        return [False, *there[1:]]


def cell(value: object, digits: int = 2) -> Cell:
    """A cell of any plain value: numbers with separators and as many digits as count, `-` where there is none."""
    if value is None or value == "":
        return Cell("-")
    if isinstance(value, bool):
        return Cell("yes" if value else "no", float(value))
    if isinstance(value, Integral):  # numpy's too
        return Cell(f"{int(value):,}", float(value))
    if isinstance(value, Real):
        number = float(value)
        whole_digits = len(str(int(abs(number))))
        small = number and abs(number) < 10**-digits
        return Cell(f"{number:.2g}" if small else f"{number:,.{min(digits, max(0, 4 - whole_digits))}f}", number)
    if isinstance(value, list | tuple):
        return Cell(", ".join(cell(item, digits).text for item in value))
    return Cell(str(value))
