"""How long contents stay cached, how far apart their uses are, and what is wanted after its eviction."""

from array import array
from collections.abc import Hashable, Iterable
from collections.abc import Sequence as Seq

from kvsim.errors import CheckError
from kvsim.metrics.histogram import DurationHistogram
from kvsim.metrics.prefix.recency import Recency


class _Held:
    """A content that is cached now, in one copy or several; times as moments."""

    __slots__ = ("copies", "since", "tokens")

    def __init__(self, tokens: int, since: int) -> None:
        self.tokens = tokens
        self.since = since
        self.copies = 1


class Residency:
    """The record of one pool over a whole run, from what its cache tells; every token of a content counts.

    A content is touched when it is stored (by whoever computed it) and when an admission finds it. All copies of it
    count as one: it comes with the first and is gone with the last. Durations are in picoseconds, as vLLM's
    `kv_block_reuse_gap_seconds`, `kv_block_idle_before_evict_seconds` and `kv_block_lifetime_seconds` have them of
    single blocks. Memory grows by a few words for each different content.
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
        self._held: dict[Hashable, _Held] = {}

    def stored(self, now_ps: int, piece: Hashable, tokens: int) -> None:
        """`piece` is cached now, or in one copy more."""
        now = self._moment(now_ps)
        held = self._held.get(piece)
        if held is None:
            self._held[piece] = _Held(tokens, now)
        else:
            held.copies += 1
        last = self._touched.get(piece)
        if last != now:
            self._touched[piece] = now
            self._recency.add(now, tokens)
            if last is not None:
                self._recency.add(last, -tokens)

    def cut(self, piece: Hashable, upper: Hashable, tokens: int) -> None:
        """The first `tokens` tokens of `piece` are `upper` from now on; that is no touch."""
        held = self._held[piece]
        held.tokens -= tokens
        self._held[upper] = _Held(tokens, held.since)
        self._touched[upper] = self._touched[piece]

    def removed(self, now_ps: int, piece: Hashable, *, for_good: bool = False) -> None:
        """A copy of `piece` is evicted; its name will not come again if `for_good`."""
        held = self._held[piece]
        if held.copies > 1:
            held.copies -= 1
            return
        del self._held[piece]
        touched = self._touched.pop(piece) if for_good else self._touched[piece]
        self.idle.add(now_ps - self._times_ps[touched], held.tokens)
        self.lifetime.add(now_ps - self._times_ps[held.since], held.tokens)

    def admitted(
        self, now_ps: int, sequence: int, found: Seq[Hashable], beyond: Iterable[tuple[Hashable, int]]
    ) -> None:
        """Sequence `sequence` finds these, and has to compute those beyond."""
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

    def _find(self, now_ps: int, found: Seq[Hashable]) -> None:
        now = self._moment(now_ps)
        by_last: dict[int, int] = {}
        for piece in found:
            last = self._touched[piece]
            by_last[last] = by_last.get(last, 0) + self._held[piece].tokens
            self._touched[piece] = now
        for last, tokens in by_last.items():
            self.reuse_distance.add(self._recency.between(last, now), tokens)
            self.reuse_gap.add(now_ps - self._times_ps[last], tokens)
        # Only now: what a sequence finds was touched apart, and each part lies between the others' uses.
        for last, tokens in by_last.items():
            self._recency.add(last, -tokens)
            self._recency.add(now, tokens)

    def _moment(self, now_ps: int) -> int:
        """The number of the present moment."""
        if not self._times_ps or self._times_ps[-1] != now_ps:
            if self._times_ps and now_ps < self._times_ps[-1]:
                raise CheckError(f"the cache changes at {now_ps} ps, after it has changed at {self._times_ps[-1]} ps")
            self._times_ps.append(now_ps)
            self._recency.open()
        return len(self._times_ps) - 1
