"""What is kept twice: prompt slots whose content another live sample of the same request also holds."""

from dataclasses import dataclass, field
from itertools import count

from kvsim.request import Sequence
from kvsim.step import Chunk


@dataclass(slots=True, eq=False)
class _Samples:
    """The live samples of one request, and where each keeps the prompt."""

    own: dict[int, int] = field(default_factory=dict)
    """Prompt tokens in slots of its own, from the first on, of each sample that shares nothing."""
    common: int = 0
    """Prompt tokens that the holders keep once for all of them."""
    rest: int = 0
    """Prompt tokens behind these, of which a writer gets a copy."""
    holders: dict[int, int | None] = field(default_factory=dict)
    """The copy of the rest that each holder has; None: it has yet to write."""

    def duplicates(self) -> int:
        copies = len({copy for copy in self.holders.values() if copy is not None})
        kept = sum(self.own.values()) + (self.common if self.holders else 0) + copies * self.rest
        shared = self.common + (self.rest if copies else 0) if self.holders else 0
        return kept - max((shared, *self.own.values()))

    def forget(self, number: int) -> None:
        self.own.pop(number, None)
        self.holders.pop(number, None)


class Duplicates:
    """`slots` that sharing would have saved now, over all live requests of more than one sample.

    A prompt token that k samples keep in slots of their own counts k - 1 times. Samples that forked keep the full
    blocks before the fork in common, and only what is copied behind them counts.
    """

    def __init__(self) -> None:
        self.slots = 0
        self.copies_due: dict[int, Sequence] = {}
        """Samples that get slots of their own with the next token that they write."""
        self._requests: dict[int, _Samples] = {}
        self._copies = count()

    def written(self, chunk: Chunk) -> None:
        """A chunk is in its slots."""
        self.holds(chunk.sequence, chunk.written + chunk.tokens)

    def holds(self, sequence: Sequence, tokens: int) -> None:
        """`sequence` keeps its first `tokens` tokens in slots of its own."""
        if sequence.request is not None:
            samples = self._requests.setdefault(sequence.request, _Samples())
            self.slots -= samples.duplicates()
            samples.own[sequence.id] = min(tokens, sequence.prompt_tokens)
            self.slots += samples.duplicates()

    def forked(self, parent: Sequence, child: Sequence, common: int) -> None:
        """`child` has forked off `parent`, with which it holds the first `common` tokens in full blocks."""
        samples = self._of(parent)
        self.slots -= samples.duplicates()
        samples.forget(child.id)
        if parent.id not in samples.holders:
            # The first fork, at the end of the prompt.
            samples.common, samples.rest = common, parent.prompt_tokens - common
            samples.forget(parent.id)
            samples.holders[parent.id] = next(self._copies)
        samples.holders[child.id] = samples.holders[parent.id]
        if common < parent.prompt_tokens:
            samples.holders[child.id] = None
            self.copies_due[child.id] = child
        self.slots += samples.duplicates()

    def stepped(self) -> None:
        """Everyone who decodes has written a token."""
        while self.copies_due:
            number, sequence = self.copies_due.popitem()
            samples = self._of(sequence)
            self.slots -= samples.duplicates()
            samples.holders[number] = next(self._copies)
            self.slots += samples.duplicates()

    def left(self, sequence: Sequence) -> None:
        """It has given everything back."""
        if sequence.request in self._requests:
            samples = self._of(sequence)
            self.slots -= samples.duplicates()
            samples.forget(sequence.id)
            self.copies_due.pop(sequence.id, None)
            self.slots += samples.duplicates()
            if not samples.own and not samples.holders:
                del self._requests[sequence.request]

    def _of(self, sequence: Sequence) -> _Samples:
        assert sequence.request is not None
        return self._requests[sequence.request]
