"""Allocators that know what each sequence holds, and let a scheduler get and give it back itself."""

from abc import abstractmethod
from collections.abc import Iterable
from typing import Generic, TypeVar

from kvsim.errors import CheckError
from kvsim.memory.books.written import WrittenBooks
from kvsim.request import Sequence
from kvsim.step import Chunk

Held = TypeVar("Held")


class HeldBooks(WrittenBooks, Generic[Held]):
    """What a sequence holds is a `Held`: a block table, a row.

    Schedulers that follow each request (`scheduling.following`) take and give back slots themselves, and tell it here.
    """

    def __init__(self) -> None:
        super().__init__()
        self._held: dict[int, Held] = {}
        """What each sequence that owns something holds, by its id."""

    def settle(self, chunks: Iterable[Chunk], *, stalled: bool = False) -> bool:
        """Nothing comes free by it."""
        if not stalled:
            self.decodes.advance()
        self._write(chunks)
        return False

    def takes(self, sequence: Sequence, held: Held, hit_tokens: int) -> None:
        """A sequence holds slots now, the first of which were found cached. Mutates."""
        self._held[sequence.id] = held
        sequence.written = hit_tokens
        self._prefill_written += hit_tokens

    def lets_go(self, sequence: Sequence) -> None:
        """A sequence holds nothing any more, and what it had written counts no more. Mutates."""
        del self._held[sequence.id]
        self._forget(sequence)

    @abstractmethod
    def count(self) -> None:
        """Bring the counts of upkeep up to date. Mutates."""

    def _owners(self, live: Iterable[Sequence], what: str) -> list[Sequence]:
        """Those of `live` who hold something; CheckError where others do too, or what they have written is not so."""
        owners = [sequence for sequence in live if sequence.id in self._held]
        if len(owners) != len(self._held):
            strays = len(self._held) - len(owners)
            raise CheckError(f"{self.name}: {strays} requests {what} and are not live (a leak)")
        self._check_written(owners)
        return owners
