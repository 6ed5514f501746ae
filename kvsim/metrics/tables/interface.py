"""The seam between a run and its tables: records are handed over in pieces, so that a long run stays small."""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import NoReturn, Protocol

from kvsim.metrics.requests.records import Ended, Event, Loss

PIECE_ROWS = 1 << 14
"""Rows of a piece, and of a row group of a table's file."""


REPLICA_ROWS = 1 << 10
"""Rows that a replica of a fleet keeps until they are dropped: some 1 KB each, and there may be thousands of them."""


class Pieces(Protocol):
    """Takes what a run has recorded, a piece at a time, each in the order of time. All verbs but `tables` mutate."""

    rows: int
    """Records come as soon as there are so many of a kind."""

    def requests(self, records: list[Ended]) -> None:
        """These requests have ended; the list is given away, here as below."""

    def events(self, events: list[Event]) -> None:
        """These allocations could not be met at once."""

    def losses(self, losses: list[Loss]) -> None:
        """These preemptions happened."""

    def steps(
        self, series: "array[int]", rests: Mapping[int, int], pool_slots: int, *, has_holes: bool, last: bool
    ) -> None:
        """These rows of the record of steps are done; the `last` ones come once, at the end, if there are any or none.

        `rests` holds, by when nothing ran any more, the slots that stayed cached from then on (missing: none).
        """

    def of_replica(self, number: int) -> "Pieces":
        """Where the records of one replica of a fleet go."""

    def tables(self) -> Mapping[str, Mapping[str, Sequence[object]]]:
        """All tables by name and column, once everything was handed over."""


class Dropped:
    """Keeps nothing: for whoever wants the summary alone."""

    def __init__(self, rows: int = PIECE_ROWS) -> None:
        self.rows = rows

    def requests(self, records: list[Ended]) -> None:
        """See `Pieces`."""

    def events(self, events: list[Event]) -> None:
        """See `Pieces`."""

    def losses(self, losses: list[Loss]) -> None:
        """See `Pieces`."""

    def steps(
        self, series: "array[int]", rests: Mapping[int, int], pool_slots: int, *, has_holes: bool, last: bool
    ) -> None:
        """See `Pieces`."""

    def of_replica(self, number: int) -> "Dropped":
        """See `Pieces`."""
        return Dropped(REPLICA_ROWS)

    def tables(self) -> "NoTables":
        """None of them."""
        return NoTables()


class NoTables(Mapping[str, Mapping[str, Sequence[object]]]):
    """The tables of a run that kept none; whoever asks for one is told so."""

    def __getitem__(self, name: str) -> NoReturn:
        raise ValueError(f"the run kept no tables, {name!r} neither; run it without pieces=Dropped()")

    def __contains__(self, name: object) -> bool:
        return False

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0
