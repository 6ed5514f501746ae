"""What a trace reader is: one file format turned into rows of (time, prompt tokens, output tokens).

A new format is one file with a class that has these members, and one line in the registry of this room.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Literal, NamedTuple, Protocol, runtime_checkable

from kvsim.errors import InputError

Row = tuple[int, int, int]
"""Time in picoseconds since any fixed moment, prompt tokens (at least 1), output tokens (at least 1)."""

OnBadRow = Literal["error", "drop"]

Identity = Literal["absent", "real"]
"""Whether a trace tells which prompts begin alike."""

BlockId = int | str


class Prompt(NamedTuple):
    """A prompt by what it begins with: the ids of its blocks, head first, the last one perhaps partly filled.

    Tokens behind the last id (less than a block) are like no other prompt's.
    """

    tokens: int
    blocks: tuple[BlockId, ...]


_SHOWN = 60
"""Characters of a wrong value that a message shows."""


class Reader(Protocol):
    """Reads one format. Stateless: position and counts live in the `Intake` it is handed."""

    format: ClassVar[str]
    columns: ClassVar[tuple[str, ...]]
    """What a file of this format must have, for messages."""
    time_unit: ClassVar[str]
    """How the file writes time, for the report."""
    prefix_identity: ClassVar[Identity]

    def recognises(self, first_line: str) -> bool:
        """Whether a file that begins with this line is of this format. Pure; never raises."""

    def rows(self, lines: Iterator[str], intake: "Intake") -> Iterator[Row]:
        """The usable rows in file order, one by one; holds no more than one row in memory.

        Keeps `intake.row` and `intake.line` at the row it reads, and hands every row that it cannot use to
        `intake.bad`. Raises InputError where the file as a whole is not of the format.
        """


@runtime_checkable
class PrefixReader(Reader, Protocol):
    """A reader of a format with real prefix identity."""

    def block_tokens(self, first_line: str) -> int:
        """Tokens of a block of ids, as the file's first line says or else as the format's published traces have it."""

    def prompts(self, lines: Iterator[str], intake: "Intake", block_tokens: int) -> Iterator[Prompt]:
        """The prompts in file order, as `rows` reads rows; what else a row says is not looked at."""

    def calls(
        self, lines: Iterator[str], intake: "Intake", block_tokens: int
    ) -> Iterator[tuple[Row, tuple[BlockId, ...]]]:
        """The rows as `rows` has them, each with the ids of its prompt; bad ids make a bad row."""


@dataclass
class Intake:
    """One pass over one trace file: where it stands, what to do with a bad row, and how many there were.

    `row` counts data rows from 1; `line` is the line of the file in which the row ends.
    """

    trace: str
    on_bad_row: OnBadRow = "error"
    row: int = 0
    line: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    ignored_columns: tuple[str, ...] = ()

    def bad(self, column: str | None, value: object, reason: str, right: str) -> None:
        """Count this row as dropped, or raise InputError with file, row, column, value, reason and cure."""
        if self.on_bad_row == "drop":
            self.dropped[reason] = self.dropped.get(reason, 0) + 1
            return
        place = f"{self.trace}: row {self.row} (line {self.line} of the file)"
        if column is not None:
            place += f", column {column}"
        raise InputError(f"{place}: {shown(value)}: {reason}; {right}, or set `on_bad_row: drop` to leave it out")

    def wrong(self, what: str) -> InputError:
        """The error to raise where the file as a whole is wrong."""
        return InputError(f"{self.trace}: {what}")


@dataclass(frozen=True)
class Report:
    """What a pass over a trace found; the same numbers each time the file is read to the same place.

    `rows_read` counts data rows reached, `rows_kept` those that became requests, `dropped` the others by
    reason. `span_ps` lies between the first and the last kept row, in the trace's own time.
    """

    format: str
    time_unit: str
    rows_read: int
    rows_kept: int
    dropped: dict[str, int]
    ignored_columns: tuple[str, ...]
    span_ps: int
    prefix_identity: Identity


def shown(value: object) -> str:
    """A value as a message shows it: quoted, on one line, cut where it is long."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
