"""What a trace reader is: one file format turned into requests, one by one.

A new format is one file with a class that has these members (most by `base.BaseReader`), and one line in the registry
of this room. `TraceRequest` is what all formats become; `Row` is the short form that a run without sessions and
sharing needs, for which a reader may have a faster way.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, Protocol

from kvsim.errors import InputError
from kvsim.workload.readers.options import ReadOptions
from kvsim.workload.readers.request import BlockId, TraceRequest

if TYPE_CHECKING:
    from kvsim.workload.readers.files.head import Head
    from kvsim.workload.readers.files.source import Source

Row = tuple[int, int, int]
"""Time in picoseconds since any fixed moment, prompt tokens (at least 1), output tokens (at least 1)."""

OnBadRow = Literal["error", "drop"]

Identity = Literal["absent", "real", "synthesised"]
"""Whether a trace tells which prompts begin alike, or whether that was made up on demand."""

Scope = Literal["none", "global", "session"]
"""Where equal block ids mean equal prefixes: nowhere, in the whole trace, or within one session's file."""


class Call(NamedTuple):
    """A row, the ids of the blocks its prompt begins with, and its session (empty: the file knows none)."""

    row: Row
    blocks: tuple[BlockId, ...]
    session: str


class Prompt(NamedTuple):
    """A prompt by what it begins with: the ids of its blocks, head first, the last one perhaps partly filled.

    Tokens behind the last id (less than a block) are like no other prompt's.
    """

    tokens: int
    blocks: tuple[BlockId, ...]


_SHOWN = 60
"""Characters of a wrong value that a message shows."""

_LISTED = 600
"""Characters of a list of names that a message shows: more than any published format has."""


class Reader(Protocol):
    """Reads one format. Stateless: position and counts live in the `Intake` it is handed."""

    format: ClassVar[str]
    columns: ClassVar[tuple[str, ...]]
    """What a file of this format must have, the time first, for messages."""
    time_unit: ClassVar[str]
    """How the file writes time, for the report."""
    prefix_identity: ClassVar[Identity]
    """What the format can tell; a file of it may tell less."""
    hash_scope: ClassVar[Scope]

    def recognises(self, head: "Head") -> bool:
        """Whether a trace that begins like this is of this format. Pure; never raises."""

    def identity(self, source: "Source", options: ReadOptions) -> Identity:
        """What this file tells of which prompts begin alike, by how it begins."""

    def block_tokens(self, source: "Source") -> int:
        """Tokens of a block of ids, as the file's beginning says or else as the format's published traces have it.

        0 where the format has no blocks.
        """

    def requests(self, source: "Source", intake: "Intake") -> Iterator[TraceRequest]:
        """The usable requests in file order, one by one; holds no more than one, and what their links need.

        Keeps `intake.row` and `intake.line` at the row it reads, and hands every row that it cannot use to
        `intake.bad`. Raises InputError where the trace as a whole is not of the format.
        """

    def rows(self, source: "Source", intake: "Intake") -> Iterator[Row]:
        """As `requests`, for a replay by times: every request needs a time of its own, others are bad rows."""

    def prompts(self, source: "Source", intake: "Intake", block_tokens: int) -> Iterator[Prompt]:
        """As `requests`, for what prompts share alone."""

    def calls(self, source: "Source", intake: "Intake", block_tokens: int) -> Iterator[Call]:
        """The rows as `rows` has them, each with the ids of its prompt; bad ids make a bad row."""


@dataclass
class Intake:
    """One pass over one trace: where it stands, what to do with a bad row, and how many there were.

    `row` counts data rows from 1; `line` is the line of the file in which the row ends (0: it has no lines).
    `notes` say what a reader had to take on trust.
    """

    trace: str
    on_bad_row: OnBadRow = "error"
    options: ReadOptions = field(default_factory=ReadOptions)
    row: int = 0
    line: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    ignored_columns: tuple[str, ...] = ()
    notes: dict[str, int] = field(default_factory=dict)

    def bad(self, column: str | None, value: object, reason: str, right: str) -> None:
        """Count this row as dropped, or raise InputError with file, row, column, value, reason and cure."""
        if self.on_bad_row == "drop":
            self.drop(reason)
            return
        place = f"{self.trace}: {self.place}"
        if column is not None:
            place += f", column {column}"
        raise InputError(f"{place}: {shown(value)}: {reason}; {right}, or set `on_bad_row: drop` to leave it out")

    def drop(self, reason: str) -> None:
        """Count this row as left out, whatever is done with bad rows: it is no mistake of the file's."""
        self.dropped[reason] = self.dropped.get(reason, 0) + 1

    def note(self, text: str) -> None:
        """Say something about this row that the report should tell; the same text is counted."""
        self.notes[text] = self.notes.get(text, 0) + 1

    @property
    def place(self) -> str:
        """Where in the file the reading stands."""
        return f"row {self.row} (line {self.line} of the file)" if self.line else f"row {self.row}"

    def wrong(self, what: str) -> InputError:
        """The error to raise where the file as a whole is wrong."""
        return InputError(f"{self.trace}: {what}")


@dataclass(frozen=True)
class Report:
    """What a pass over a trace found; the same numbers each time the file is read to the same place.

    `rows_read` counts data rows reached, `rows_kept` those that became requests, `dropped` the others by
    reason. `span_ps` lies between the first and the last kept row, in the trace's own time. `block_tokens` is 0
    where prompts are not told apart.
    """

    format: str
    time_unit: str
    rows_read: int
    rows_kept: int
    dropped: dict[str, int]
    ignored_columns: tuple[str, ...]
    span_ps: int
    prefix_identity: Identity
    hash_scope: Scope = "none"
    block_tokens: int = 0
    notes: dict[str, int] = field(default_factory=dict)

    def describe(self, trace: str, requests: int | None) -> dict[str, object]:
        """What was read of `trace`, of which so many requests were asked (None: all), as plain values."""
        return {
            "source": "trace",
            "trace": trace,
            "format": self.format,
            "time_unit": self.time_unit,
            "rows_read": self.rows_read,
            "rows_kept": self.rows_kept,
            "requests_asked": requests,
            "rows_dropped": dict(sorted(self.dropped.items())),
            "prefix_identity": self.prefix_identity,
            "hash_scope": self.hash_scope,
            "block_tokens": self.block_tokens,
        }


class Surveyed(ABC):
    """Traffic that was read from a trace, and can say what that holds."""

    stands_alone = False
    """It would follow sessions, and the trace has none."""
    ignores_sessions = False
    """The trace has sessions, and this does not follow them."""
    ignores_tags = False
    """The trace tells tenants or priorities, and this does not take them along."""

    @abstractmethod
    def survey(self) -> Report:
        """What the trace holds; reads it if nobody has."""

    @property
    @abstractmethod
    def report(self) -> Report | None:
        """The same as far as it was read; None where it was not."""

    @property
    @abstractmethod
    def prefix_identity(self) -> Identity:
        """Whether the trace tells which prompts begin alike."""

    @property
    @abstractmethod
    def block_tokens(self) -> int | None:
        """By how many tokens it tells prompts apart; None: not by blocks, or it is not asked."""


def shown(value: object) -> str:
    """A value as a message shows it: quoted, on one line, cut where it is long."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def listed(names: Iterable[object]) -> str:
    """Names that a file gave, as a message shows them: on one line, cut where they are many."""
    text = repr(", ".join(map(str, names)))[1:-1]
    return text if len(text) <= _LISTED else f"{text[:_LISTED]}..."
