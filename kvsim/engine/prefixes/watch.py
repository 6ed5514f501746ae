"""The listener of a prefix cache: puts the time to what the cache tells, and hands it to the records."""

from collections.abc import Iterable
from collections.abc import Sequence as Seq

from kvsim.content import Content, Layers
from kvsim.engine.clock import Clock
from kvsim.engine.prefixes.moment import Moment
from kvsim.memory.interface import Allocator
from kvsim.memory.residency import Piece
from kvsim.metrics.prefix import KvEventLog, Residency
from kvsim.request import Sequence


class CacheWatch:
    """Listens to the cache of `allocator` from now on (a `CacheListener`).

    `layers` says what hits are made of; with `kv_events` every change is kept. The record of residency costs a few
    words for each content that may be asked for again.
    """

    def __init__(self, allocator: Allocator, clock: Clock, layers: Layers | None, *, kv_events: bool) -> None:
        self.moment = Moment(clock, allocator.decodes)
        self.residency = Residency()
        self.events = KvEventLog(allocator.capacity(1)) if kv_events else None
        self._layers = layers or Layers()
        allocator.listen(self)

    def admission(self, sequence: Sequence) -> tuple[tuple[int, ...], int]:
        """Of a sequence that was admitted just now: what it found, by layer of sharing, and tokens it was too late for.

        Once for each admission.
        """
        return self._layers.split(sequence.contents.runs, sequence.written), self.residency.regret.pop(sequence.id, 0)

    # What the cache tells.

    def stored(self, pieces: Seq[Piece], before: Piece | None, content: Content, start: int, tokens: int) -> None:
        """See `CacheListener`."""
        now_ps = self.moment()
        self.residency.stored(now_ps, pieces, tokens)
        if self.events is not None:
            self.events.stored(now_ps, pieces, before, content, start, tokens)

    def removed(self, pieces: Seq[Piece], tokens: int, *, for_good: bool = False) -> None:
        """See `CacheListener`."""
        now_ps = self.moment()
        self.residency.removed(now_ps, pieces, tokens, for_good=for_good)
        if self.events is not None:
            self.events.removed(now_ps, pieces)

    def forgotten(self, pieces: Seq[Piece]) -> None:
        """See `CacheListener`."""
        self.residency.forgotten(pieces)

    def cut(self, piece: Piece, upper: Piece, tokens: int) -> None:
        """See `CacheListener`."""
        self.residency.cut(piece, upper)
        if self.events is not None:
            self.events.cut(piece, upper, tokens)

    def admitted(
        self,
        sequence: int,
        content: Content,
        tokens: int,
        found: Seq[tuple[Piece, int]],
        beyond: Iterable[tuple[Piece, int]],
    ) -> None:
        """See `CacheListener`."""
        self.residency.admitted(self.moment(), sequence, found, beyond)
