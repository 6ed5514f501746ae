"""The seam between the recorder and how an allocator lays out what it gives."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kvsim.metrics.requests import Journey


class Paint(NamedTuple):
    """A run of slots that is of another class, or another sequence's, than before."""

    start: int
    slots: int
    sequence: int
    kind: int


class Layout(ABC):
    """Which slots of a pool hold what, as it was when somebody last looked."""

    @abstractmethod
    def changes(self, running: Sequence[Journey], *, stalled: bool) -> Iterator[Paint]:
        """What is different since the last time, slots that came free first. Mutates: it is noted now."""

    @abstractmethod
    def forked(self, parent: int, child: int) -> None:
        """`child` holds what `parent` holds."""

    @abstractmethod
    def left(self, sequence: int, *, in_plan: bool) -> None:
        """`sequence` holds nothing any more; `in_plan`: since somebody else could not grow in the step planned."""
