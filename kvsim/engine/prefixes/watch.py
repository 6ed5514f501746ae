"""The listener of a prefix cache: puts the time to what the cache tells, and hands it to the records."""

from collections.abc import Iterable
from collections.abc import Sequence as Seq
from typing import Protocol

from kvsim.content import Content, Layers
from kvsim.engine.clock import Clock
from kvsim.engine.prefixes.moment import Moment
from kvsim.memory.interface import Allocator
from kvsim.memory.residency import Piece
from kvsim.metrics.prefix import KvEventLog, Residency
from kvsim.request import Sequence


class Follower(Protocol):
    """Keeps up with the contents of a cache, event by event (see `CacheListener`); all verbs mutate."""

    def stored(
        self, now_ps: int, pieces: Seq[Piece], before: Piece | None, content: Content, start: int, tokens: int
    ) -> None:
        """These can be found from now on."""

    def removed(self, now_ps: int, pieces: Seq[Piece]) -> None:
        """A copy of each is gone."""

    def cleared(self, now_ps: int) -> None:
        """Nothing is there any more."""

    def cut(self, piece: Piece, upper: Piece, tokens: int) -> None:
        """One is two from now on."""


class CacheWatch:
    """Listens to the cache of `allocator` from now on (a `CacheListener`).

    `layers` says what hits are made of; with `kv_events` every change is kept. The record of residency costs a few
    words for each content that may be asked for again. `follower` is told every change as well.
    """

    def __init__(
        self,
        allocator: Allocator,
        clock: Clock,
        layers: Layers | None,
        *,
        kv_events: bool,
        follower: Follower | None = None,
    ) -> None:
        self.moment = Moment(clock, allocator.decodes)
        self.residency = Residency()
        self.events = KvEventLog(allocator.capacity(1)) if kv_events else None
        self._told = [one for one in (self.events, follower) if one is not None]
        self._layers = layers or Layers()
        self._recalls = allocator.recalls
        allocator.listen(self)

    def admission(self, sequence: Sequence) -> tuple[tuple[int, ...], int | None]:
        """Of a sequence that was admitted just now: what it found, by layer of sharing, and tokens it was too late for
        (None: the cache cannot tell).

        Once for each admission.
        """
        late = self.residency.regret.pop(sequence.id, 0) if self._recalls else None
        return self._layers.split(sequence.contents.runs, sequence.written), late

    # What the cache tells.

    def stored(self, pieces: Seq[Piece], before: Piece | None, content: Content, start: int, tokens: int) -> None:
        """See `CacheListener`."""
        now_ps = self.moment()
        self.residency.stored(now_ps, pieces, tokens)
        for one in self._told:
            one.stored(now_ps, pieces, before, content, start, tokens)

    def removed(self, pieces: Seq[Piece], tokens: int, *, for_good: bool = False) -> None:
        """See `CacheListener`."""
        now_ps = self.moment()
        self.residency.removed(now_ps, pieces, tokens, for_good=for_good)
        for one in self._told:
            one.removed(now_ps, pieces)

    def cleared(self) -> None:
        """See `CacheListener`."""
        self.residency.cleared()
        now_ps = self.moment()
        for one in self._told:
            one.cleared(now_ps)

    def forgotten(self, pieces: Seq[Piece]) -> None:
        """See `CacheListener`."""
        self.residency.forgotten(pieces)

    def cut(self, piece: Piece, upper: Piece, tokens: int) -> None:
        """See `CacheListener`."""
        self.residency.cut(piece, upper)
        for one in self._told:
            one.cut(piece, upper, tokens)

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
