"""What stays of every request that has ended when its record is given away: what its latencies are made of."""

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, compress

from kvsim.metrics.requests.records import Ended, Event
from kvsim.metrics.requests.tenants import Tenants
from kvsim.step import ENDS

_NEVER = -1
_SUMS = ("lost_tokens", "recomputed_tokens", "swapped_tokens", "hit_tokens", "rehit_tokens", "regret_tokens")
_FINISHED = ENDS.index("finished")


class _Piece:
    """The columns of some of them; pieces are never resized, which would leave holes in memory as large as they are."""

    __slots__ = (
        *("arrival_ps", "asked", "end", "end_ps", "first_token_ps", "gaps", "hit", "regret", "scheduled_ps"),
        *("slo_class", "whose"),
    )

    def __init__(
        self,
        records: Sequence[Ended],
        *,
        caches: bool,
        recalls: bool,
        classes: Mapping[str, int],
        tenants: Tenants,
    ) -> None:
        self.arrival_ps = array("q", [record.arrival_ps for record in records])
        self.scheduled_ps = array("q", [_mark(record.first_scheduled_ps) for record in records])
        self.first_token_ps = array("q", [_mark(record.first_token_ps) for record in records])
        self.end_ps = array("q", [record.end_ps for record in records])
        self.gaps = _narrow([record.gaps for record in records])
        """Gaps between the tokens of the longest sample."""
        self.end = bytes([_NUMBERS[record.end] for record in records])
        if caches:
            self.asked = _narrow([record.asked_tokens for record in records])
            self.hit = _narrow([record.hit_tokens for record in records])
            if recalls:
                self.regret = _narrow([record.regret_tokens or 0 for record in records])
        if classes:
            self.slo_class = _narrow([classes.get(record.slo_class, 0) for record in records])
        self.whose = tenants.add(records)


class Marks:
    """Some 35 bytes a request, and a few more where something `caches`; and sums over all records.

    What was missed although it had been cached is only counted where the cache `recalls` it.
    Requests of the `classes` of service that have goals of their own are told apart: a byte more.

    Whatever has one entry for each request has it in the order in which they ended.
    """

    def __init__(self, *, caches: bool = True, recalls: bool = True, classes: Sequence[str] = ()) -> None:
        self._classes = {name: number for number, name in enumerate(classes, 1)}
        self.ends: Counter[str] = Counter()
        self.causes: Counter[str] = Counter()
        """Allocations that could not be met, by cause."""
        self.lost_tokens = self.recomputed_tokens = self.swapped_tokens = 0
        self.hit_tokens = self.rehit_tokens = self.regret_tokens = 0
        self.tenants = Tenants()
        self._caches = caches
        self.recalls = recalls
        self._pieces: list[_Piece] = []

    @classmethod
    def joined(cls, several: Iterable["Marks"]) -> "Marks":
        """All of several replicas, one after the other."""
        whole = cls()
        for one in several:
            whole._caches &= one._caches
            whole.recalls &= one.recalls
            whole._classes = one._classes
            whole._pieces += one._pieces
            whole.ends.update(one.ends)
            whole.causes.update(one.causes)
            whole.tenants.join(one.tenants)
            for name in _SUMS:
                setattr(whole, name, getattr(whole, name) + getattr(one, name))
        return whole

    def add(self, records: Sequence[Ended]) -> None:
        """These have ended. Mutates."""
        if not records:
            return
        self._pieces.append(
            _Piece(records, caches=self._caches, recalls=self.recalls, classes=self._classes, tenants=self.tenants)
        )
        self.ends.update([record.end for record in records])
        self.lost_tokens += sum([record.lost_tokens for record in records])
        self.recomputed_tokens += sum([record.recomputed_tokens for record in records])
        self.swapped_tokens += sum([record.swapped_tokens for record in records])
        self.hit_tokens += sum([record.hit_tokens for record in records])
        self.rehit_tokens += sum([record.rehit_tokens for record in records])
        self.regret_tokens += sum([record.regret_tokens or 0 for record in records])

    def count(self, events: Sequence[Event]) -> None:
        """These allocations could not be met. Mutates."""
        self.causes.update([event.cause for event in events])

    def __len__(self) -> int:
        return sum(self.ends.values())

    def _column(self, name: str, chosen: bytearray | None = None) -> Iterator[int]:
        """An entry for each of them, or of the chosen ones."""
        values = chain.from_iterable(getattr(piece, name) for piece in self._pieces)
        return values if chosen is None else compress(values, chosen)

    # Which of them. A choice is a byte for each, 1 for those that are meant.

    def arrived_in(self, stretches_ps: Sequence[tuple[int, int]]) -> bytearray:
        """Those that arrived in one of the stretches, both its ends included."""
        return _choice(self._column("arrival_ps"), stretches_ps, opening=True)

    def finished_in(self, stretches_ps: Sequence[tuple[int, int]]) -> bytearray:
        """Those that finished in one of the stretches, its end included and not its start.

        As with tokens: what comes out at the very moment at which a stretch opens belongs to the step before it.
        """
        return self.finished(_choice(self._column("end_ps"), stretches_ps, opening=False))

    def finished(self, chosen: bytearray) -> bytearray:
        """Those of the chosen that finished."""
        return bytearray(one and end == _FINISHED for one, end in zip(chosen, self._column("end"), strict=True))

    def of_class(self, name: str | None, chosen: bytearray) -> bytearray:
        """Those of the chosen that are of this class; None: of no class that has goals of its own."""
        number = 0 if name is None else self._classes[name]
        return bytearray(one and own == number for one, own in zip(chosen, self._column("slo_class"), strict=True))

    def of_tenant(self, name: str, chosen: bytearray) -> bytearray:
        """Those of the chosen that are this tenant's."""
        owned = chain.from_iterable(piece.whose.are(name) for piece in self._pieces)
        return bytearray(one and own for one, own in zip(chosen, owned, strict=True))

    # What of those: times in picoseconds, of those that got so far.

    def queue_ps(self, chosen: bytearray) -> "array[int]":
        """Arrival to the first step that computes something of the request."""
        return array("q", _lasting(self._column("arrival_ps", chosen), self._column("scheduled_ps", chosen)))

    def prefill_ps(self, chosen: bytearray) -> "array[int]":
        """First scheduled to first token: the rest of the TTFT."""
        return array("q", _lasting(self._column("scheduled_ps", chosen), self._column("first_token_ps", chosen)))

    def ttft_ps(self, chosen: bytearray) -> "array[int]":
        """Arrival to first output token, queueing included."""
        return array("q", _lasting(self._column("arrival_ps", chosen), self._column("first_token_ps", chosen)))

    def e2e_ps(self, chosen: bytearray) -> "array[int]":
        """Arrival to end."""
        return array("q", _lasting(self._column("arrival_ps", chosen), self._column("end_ps", chosen)))

    def tpot_ps(self, chosen: bytearray) -> "array[float]":
        """(E2E - TTFT) / (output - 1) of finished requests of two tokens or more; with samples, of the longest."""
        parts = (self._column(name, chosen) for name in ("first_token_ps", "end_ps", "gaps"))
        return array(
            "d", ((end - first) / gaps for first, end, gaps in zip(*parts, strict=True) if gaps and first >= 0)
        )

    def how_many(self, chosen: bytearray, met: Callable[[int, int, int], bool]) -> int:
        """How many of the chosen, which have all got a token, `met` says yes to: of (TTFT, E2E, gaps)."""
        parts = (self._column(name, chosen) for name in ("arrival_ps", "first_token_ps", "end_ps", "gaps"))
        return sum(met(first - came, end - came, gaps) for came, first, end, gaps in zip(*parts, strict=True))

    def found_tokens(self, chosen: bytearray) -> tuple[int, int, int | None]:
        """Prompt tokens asked, found cached, and missed although they had been cached (None: not counted).

        Only where something caches.
        """
        asked, hit = (sum(self._column(name, chosen)) for name in ("asked", "hit"))
        return asked, hit, sum(self._column("regret", chosen)) if self.recalls else None


_NUMBERS = {end: number for number, end in enumerate(ENDS)}


def _mark(time_ps: int | None) -> int:
    return _NEVER if time_ps is None else time_ps


_WIDTHS = (("B", 8), ("H", 16), ("I", 32), ("q", 63))


def _narrow(values: Sequence[int]) -> "array[int]":
    """The values, none below zero, in as few bytes each as the largest takes."""
    bits = max(values).bit_length()
    return array(next(code for code, most in _WIDTHS if bits <= most), values)


def _lasting(since_ps: Iterable[int], until_ps: Iterable[int]) -> Iterator[int]:
    return (until - since for since, until in zip(since_ps, until_ps, strict=True) if since >= 0 and until >= 0)


def _choice(moments_ps: Iterable[int], stretches_ps: Sequence[tuple[int, int]], *, opening: bool) -> bytearray:
    """The moments that lie in a stretch, its end included and, with `opening`, its start as well."""
    if len(stretches_ps) == 1:
        [(start, end)] = stretches_ps
        first = start if opening else start + 1
        return bytearray(first <= moment <= end for moment in moments_ps)
    return bytearray(_during(stretches_ps, moment, opening=opening) for moment in moments_ps)


def _during(stretches_ps: Sequence[tuple[int, int]], moment_ps: int, *, opening: bool) -> bool:
    index = bisect_right(stretches_ps, moment_ps, key=lambda stretch: stretch[0]) - 1
    if index >= 0 and not opening and stretches_ps[index][0] == moment_ps:
        index -= 1
    return index >= 0 and moment_ps <= stretches_ps[index][1]
