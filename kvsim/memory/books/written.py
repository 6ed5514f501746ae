"""What every allocator that keeps KV counts of its sequences: who has written how much, and who has ended."""

from collections.abc import Iterable

from kvsim.errors import CheckError
from kvsim.memory.interface import Allocator
from kvsim.request import Sequence
from kvsim.step import Chunk, DecodeSet, Upkeep


class WrittenBooks(Allocator):
    """Written tokens of the decoding sequences (`decodes`), of those that do not decode, and of those that have ended.

    A subclass says what else happens when a sequence leaves the decode set (`_leave`).
    """

    def __init__(self) -> None:
        self.decodes = DecodeSet()
        self.upkeep = Upkeep()
        self._prefill_written = 0
        self._retired: set[int] = set()
        """Sequences that have ended and not yet left."""
        self.dead = 0
        """Slots that these have written."""

    def land(self, sequence: Sequence) -> None:
        self._prefill_written += sequence.written

    def retire(self, sequence: Sequence) -> None:
        """Raises CheckError where contents are kept: what is dead would be used again as soon as somebody hits it."""
        if self.caches:
            raise CheckError(
                f"{self.name}: request {sequence.id} has ended and is to keep its slots, where others could hit them; "
                "a caching allocator keeps what is released, so release it"
            )
        self._leave(sequence)
        self._retired.add(sequence.id)
        self.dead += sequence.written

    def _write(self, chunks: Iterable[Chunk]) -> None:
        """Prompts have come so much further."""
        for chunk in chunks:
            chunk.sequence.written += chunk.tokens
            self._prefill_written += chunk.tokens

    def _check_written(self, owners: Iterable[Sequence]) -> None:
        """CheckError where those who own something have written another number of tokens than is counted."""
        written = sum(self.decodes.written_of(sequence) for sequence in owners)
        counted = self._prefill_written + self.decodes.written + self.dead
        if written != counted:
            raise CheckError(f"{self.name}: live requests have written {written} tokens, {counted} are counted")

    def _leave(self, sequence: Sequence) -> None:
        """It decodes no more."""
        self.decodes.leave(sequence)

    def _forget(self, sequence: Sequence) -> None:
        """What it has written counts no more; its own numbers are brought up to date."""
        if sequence.decoding:
            self._leave(sequence)
        elif sequence.id in self._retired:
            self._retired.remove(sequence.id)
            self.dead -= sequence.written
        else:
            self._prefill_written -= sequence.written
