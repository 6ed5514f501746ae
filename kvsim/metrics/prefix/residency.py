"""How long contents stay cached, how far apart their uses are, and what is wanted after its eviction."""

from array import array
from collections.abc import Hashable, Iterable
from collections.abc import Sequence as Seq

from kvsim.errors import CheckError
from kvsim.metrics.histogram import DurationHistogram
from kvsim.metrics.prefix.numbers import Told
from kvsim.metrics.prefix.recency import Recency

_MOMENTS = 1 << 12
"""Fewer moments than this are not worth merging."""


class Residency:
    """The record of one pool over a whole run, from what its cache tells; every token of a content counts.

    A content is touched when it is stored (by whoever computed it) and when an admission finds it. All copies of it
    count as one: it comes with the first and is gone with the last. Durations are in picoseconds, as vLLM's
    `kv_block_reuse_gap_seconds`, `kv_block_idle_before_evict_seconds` and `kv_block_lifetime_seconds` have them of
    single blocks. Memory grows by a few words for each different content that may be asked for again.
    """

    def __init__(self) -> None:
        self.reuse_distance = DurationHistogram()
        """Tokens, not times: of other contents touched between the last touch of what is found and the moment of it."""
        self.reuse_gap = DurationHistogram()
        """From the last touch of what is found to the moment of it."""
        self.idle = DurationHistogram()
        """From the last touch of what is evicted to its eviction."""
        self.lifetime = DurationHistogram()
        """From when it was first stored, since it was last gone, to its eviction."""
        self.regret: dict[int, int] = {}
        """By id of a sequence that was admitted just now: tokens that it has to compute although they were cached."""
        self._recency = Recency()
        self._times_ps = array("q")
        self._touched: dict[Hashable, int] = {}
        """The moment of the last touch of every content that was ever stored."""
        self._since: dict[Hashable, int] = {}
        """The moment from which on every content that is cached now has been there."""
        self._copies: dict[Hashable, int] = {}
        """Of those that are cached more than once."""
        self._last_stay: set[Hashable] = set()
        """Those that are cached now and that nobody can ask for: gone with their eviction."""
        self._room = _MOMENTS
        """With so many moments those that nobody refers to become one with their neighbours."""

    @property
    def told(self) -> Told:
        """What it comes to; it grows with the record."""
        return Told(self.reuse_distance, self.reuse_gap, self.idle, self.lifetime)

    def stored(self, now_ps: int, pieces: Iterable[Hashable], tokens: int) -> None:
        """Each of `pieces`, of so many tokens, is cached now, or in one copy more."""
        now = self._moment(now_ps)
        touched, since, fresh = self._touched, self._since, 0
        again: dict[int, int] = {}
        for piece in pieces:
            if piece in since:
                self._copies[piece] = self._copies.get(piece, 1) + 1
            else:
                since[piece] = now
            last = touched.get(piece)
            touched[piece] = now
            if last is None:
                fresh += tokens
            else:
                again[last] = again.get(last, 0) + tokens
        self._recency.add(now, fresh)
        self._move(again, now)

    def cut(self, piece: Hashable, upper: Hashable) -> None:
        """The first part of `piece` is `upper` from now on; that is no touch."""
        self._since[upper] = self._since[piece]
        self._touched[upper] = self._touched[piece]

    def removed(self, now_ps: int, pieces: Iterable[Hashable], tokens: int, *, for_good: bool = False) -> None:
        """A copy of each, of so many tokens, is evicted; their names will not come again if `for_good`."""
        ended: dict[tuple[int, int], int] = {}
        for piece in pieces:
            copies = self._copies.pop(piece, 1)
            if copies == 1:
                times = self._touched[piece], self._since.pop(piece)
                ended[times] = ended.get(times, 0) + tokens
                if for_good or piece in self._last_stay:
                    self._last_stay.discard(piece)
                    del self._touched[piece]
            elif copies > 2:
                self._copies[piece] = copies - 1
        for (last, since), gone in ended.items():
            self.idle.add(now_ps - self._times_ps[last], gone)
            self.lifetime.add(now_ps - self._times_ps[since], gone)

    def forgotten(self, pieces: Iterable[Hashable]) -> None:
        """Nobody can ask for these any more."""
        touched, since = self._touched, self._since
        for piece in pieces:
            if piece in since:
                self._last_stay.add(piece)
            else:
                touched.pop(piece, None)

    def cleared(self) -> None:
        """All is gone, and forgotten: whoever runs the engine has emptied the cache. That counts as no eviction."""
        self._touched.clear()
        self._since.clear()
        self._copies.clear()
        self._last_stay.clear()

    def begins(self) -> None:
        """The run begins: what is cached by now was there before it, and what happened to that until now is no part of
        the record."""
        self.reuse_distance, self.reuse_gap = DurationHistogram(), DurationHistogram()
        self.idle, self.lifetime = DurationHistogram(), DurationHistogram()
        self.regret.clear()

    def admitted(
        self,
        now_ps: int,
        sequence: int,
        found: Seq[tuple[Hashable, int]],
        beyond: Iterable[tuple[Hashable, int]],
    ) -> None:
        """Sequence `sequence` finds these, and has to compute those beyond; each with its tokens."""
        if found:
            self._find(now_ps, found)
        regret = 0
        for piece, tokens in beyond:
            if piece not in self._touched:
                # Nothing behind it can have been cached either.
                break
            regret += tokens
        if regret:
            self.regret[sequence] = regret

    def _find(self, now_ps: int, found: Seq[tuple[Hashable, int]]) -> None:
        now, touched = self._moment(now_ps), self._touched
        by_last: dict[int, int] = {}
        for piece, tokens in found:
            last = touched[piece]
            by_last[last] = by_last.get(last, 0) + tokens
            touched[piece] = now
        # Before anything moves: of what a sequence finds, too, each part may lie between two uses of another.
        for last, tokens in by_last.items():
            self.reuse_distance.add(self._recency.between(last, now), tokens)
            self.reuse_gap.add(now_ps - self._times_ps[last], tokens)
        self._move(by_last, now)

    def _move(self, tokens_by_moment: dict[int, int], now: int) -> None:
        """So many tokens, last touched then, are touched now."""
        for last, tokens in tokens_by_moment.items():
            if last != now:
                self._recency.add(last, -tokens)
                self._recency.add(now, tokens)

    def _moment(self, now_ps: int) -> int:
        """The number of the present moment."""
        if not self._times_ps or self._times_ps[-1] != now_ps:
            if self._times_ps and now_ps < self._times_ps[-1]:
                raise CheckError(f"the cache changes at {now_ps} ps, after it has changed at {self._times_ps[-1]} ps")
            if len(self._times_ps) >= self._room:
                self._merge_moments()
            self._times_ps.append(now_ps)
            self._recency.open()
        return len(self._times_ps) - 1

    def _merge_moments(self) -> None:
        """Before a new one: keep apart those that contents refer to; between two of these only sums are asked for."""
        kept = sorted({*self._touched.values(), *self._since.values()})
        merged, numbers = self._recency.merged(kept)
        times_ps = array("q", bytes(8 * merged.moments))
        for old, new in numbers.items():
            times_ps[new] = self._times_ps[old]
        self._recency, self._times_ps = merged, times_ps
        for moments in (self._touched, self._since):
            moments.update([(piece, numbers[moment]) for piece, moment in moments.items()])
        # So that the work is a share of what is recorded in between.
        self._room = len(times_ps) + len(self._touched) + len(self._since) + _MOMENTS
