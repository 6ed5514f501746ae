"""What is kept twice: prompt slots whose content another live sample of the same request also holds."""

from dataclasses import dataclass, field

from kvsim.request import Sequence
from kvsim.step import Chunk


@dataclass(slots=True, eq=False)
class _Samples:
    """The live samples of one request, and where each keeps the prompt."""

    common: int = 0
    """Prompt tokens that the holders keep once for all of them."""
    holders: set[int] = field(default_factory=set)
    own: dict[int, int] = field(default_factory=dict)
    """Prompt tokens that each keeps in slots of its own: behind the common ones for a holder, from 0 on for others."""

    def duplicates(self) -> int:
        kept = sum(self.own.values()) + (self.common if self.holders else 0)
        covered = (own + (self.common if number in self.holders else 0) for number, own in self.own.items())
        return kept - max(covered, default=0)


class Duplicates:
    """`slots` that sharing would have saved now, over all live requests of more than one sample.

    A prompt token that k samples keep in slots of their own counts k - 1 times. Samples that forked keep the full
    blocks before the fork in common, and only what is copied behind them counts.
    """

    def __init__(self) -> None:
        self.slots = 0
        self._requests: dict[int, _Samples] = {}
        self.copies_due: dict[int, Sequence] = {}
        """Samples that get slots of their own with the next token that they write."""

    def written(self, chunk: Chunk) -> None:
        """A chunk is in its slots."""
        self.holds(chunk.sequence, chunk.written + chunk.tokens)

    def holds(self, sequence: Sequence, tokens: int) -> None:
        """`sequence` keeps its first `tokens` tokens in slots of its own."""
        if sequence.request is None:
            return
        samples = self._requests.setdefault(sequence.request, _Samples())
        self.slots -= samples.duplicates()
        samples.own[sequence.id] = min(tokens, sequence.prompt_tokens)
        self.slots += samples.duplicates()

    def forked(self, parent: Sequence, child: Sequence, common: int) -> None:
        """`child` has forked off `parent` at the end of the prompt; they hold its first `common` tokens for good."""
        assert parent.request is not None
        samples = self._requests[parent.request]
        samples.common = common
        samples.holders |= {parent.id, child.id}
        samples.own[parent.id] = parent.prompt_tokens - common
        samples.own[child.id] = 0
        if parent.prompt_tokens > common:
            self.copies_due[child.id] = child

    def stepped(self) -> None:
        """Everyone who decodes has written a token."""
        while self.copies_due:
            _, sequence = self.copies_due.popitem()
            assert sequence.request is not None
            self.holds(sequence, sequence.prompt_tokens - self._requests[sequence.request].common)

    def left(self, sequence: Sequence) -> None:
        """It has given everything back."""
        samples = None if sequence.request is None else self._requests.get(sequence.request)
        if samples is None or sequence.request is None or sequence.id not in samples.own:
            return
        self.slots -= samples.duplicates()
        del samples.own[sequence.id]
        samples.holders.discard(sequence.id)
        self.copies_due.pop(sequence.id, None)
        self.slots += samples.duplicates()
        if not samples.own:
            del self._requests[sequence.request]
