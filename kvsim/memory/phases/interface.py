"""The seam between a pool of blocks and the bookkeeping of who takes a block next."""

from abc import ABC, abstractmethod


class Phases(ABC):
    """The decoding sequences of a pool of blocks by phase.

    A sequence that decodes takes a new block each time its written tokens are a multiple of the block size. Its
    phase is the decode clock, modulo the block size, of the steps in which it does. During the step at clock t one of
    phase p owns size - (t - p) mod size slots that are not written: a sawtooth, the same for all of one phase.
    All answers are exact integers, and all are pure but those of `add` and `remove`.
    """

    __slots__ = ("count", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.count = 0
        """Sequences, over all phases."""

    @abstractmethod
    def add(self, phase: int) -> None:
        """A sequence of phase `phase` (0 to size - 1) begins to decode. Mutates; O(1)."""

    @abstractmethod
    def remove(self, phase: int) -> None:
        """One leaves. Mutates; O(1)."""

    @abstractmethod
    def recount(self) -> int:
        """Sequences, counted again from the phases."""

    @abstractmethod
    def crossing(self, clock: int) -> int:
        """How many take a block in the step at `clock`. O(1)."""

    @abstractmethod
    def blocks(self, clock: int, steps: int) -> int:
        """Blocks that `steps` steps from `clock` on take."""

    @abstractmethod
    def served(self, clock: int, limit: int, blocks: int) -> int:
        """How many of `limit` steps from `clock` on `blocks` blocks suffice for."""

    @abstractmethod
    def quiet(self, clock: int, limit: int) -> int:
        """How many of `limit` steps from `clock` on take no block."""

    @abstractmethod
    def unwritten_sum(self, clock: int, steps: int, a: int, b: int) -> int:
        """Sum over steps j = 0 .. `steps` - 1 from `clock` on of (a + b j) x slots owned and not written in step j."""

    @abstractmethod
    def unwritten_peak(self, clock: int, steps: int) -> int:
        """Most slots owned and not written during any of `steps` (at least one) steps from `clock` on."""
