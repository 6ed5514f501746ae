"""The seam between regions and the address space they lie in."""

from abc import ABC, abstractmethod
from typing import Any


class Space(ABC):
    """Slots 0..size-1, taken and given back in regions.

    A region is named by its start and by the length that was asked for. It may take more room than that (`room`):
    what lies beyond the ask is `rounding`, neither free nor anybody's. `give` and `extend` are handed the length that
    was asked for, never the room.
    """

    size: int
    free: int
    rounding: int
    """Slots that regions take beyond what was asked."""

    @property
    @abstractmethod
    def most(self) -> int:
        """The longest region that the empty space has room for."""

    @abstractmethod
    def room(self, length: int) -> int:
        """Slots that a region of `length` (1 or more) takes. Pure."""

    @abstractmethod
    def take(self, length: int) -> int | None:
        """The start of a new region of `length`; None, and nothing changed, if there is no place for it. O(holes)."""

    @abstractmethod
    def extend(self, start: int, length: int, longer: int) -> bool:
        """Lengthen the region at `start` where it lies; False, and nothing changed, if it cannot be. O(log holes)."""

    @abstractmethod
    def give(self, start: int, length: int) -> None:
        """Give back a region; raises CheckError if any of it is free already (a double free), and changes nothing."""

    @property
    @abstractmethod
    def holes(self) -> list[tuple[int, int]]:
        """(start, length) of all that is free, by start, in the pieces that regions are put into."""

    @property
    @abstractmethod
    def largest(self) -> int:
        """The largest hole in slots (0 when full)."""

    @abstractmethod
    def below(self, length: int) -> int:
        """Free slots in holes smaller than `length`."""

    @abstractmethod
    def snapshot(self) -> Any:
        """What `restore` needs, once, to undo everything done since. O(holes)."""

    @abstractmethod
    def restore(self, snapshot: Any) -> None:
        """Undo everything done since `snapshot` was taken."""
