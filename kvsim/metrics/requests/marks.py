"""What stays of every request that has ended when its record is given away: what its latencies are made of."""

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import compress

from kvsim.metrics.requests.records import Ended, Event
from kvsim.step import ENDS

_NEVER = -1
_FINISHED = ENDS.index("finished")


class Marks:
    """41 bytes a request, and 24 more where something `caches`; and sums over all records.

    Each column has an entry for each request, in the order in which they ended.
    """

    def __init__(self, *, caches: bool = True) -> None:
        self.arrival_ps, self.end_ps = array("q"), array("q")
        self.gaps = array("q")
        """Gaps between the tokens of the longest sample."""
        self.ends: Counter[str] = Counter()
        self.causes: Counter[str] = Counter()
        """Allocations that could not be met, by cause."""
        self.lost_tokens = self.recomputed_tokens = self.swapped_tokens = 0
        self.hit_tokens = self.rehit_tokens = self.regret_tokens = 0
        self._scheduled_ps, self._first_token_ps = array("q"), array("q")
        self._end = bytearray()
        self._found = tuple(array("q") for _ in range(3)) if caches else None

    def add(self, records: Sequence[Ended]) -> None:
        """These have ended."""
        if not records:
            return
        self.arrival_ps.extend([record.arrival_ps for record in records])
        self.end_ps.extend([record.end_ps for record in records])
        self.gaps.extend([record.gaps for record in records])
        self._scheduled_ps.extend([_mark(record.first_scheduled_ps) for record in records])
        self._first_token_ps.extend([_mark(record.first_token_ps) for record in records])
        self._end.extend([_NUMBERS[record.end] for record in records])
        self.ends.update([record.end for record in records])
        self.lost_tokens += sum([record.lost_tokens for record in records])
        self.recomputed_tokens += sum([record.recomputed_tokens for record in records])
        self.swapped_tokens += sum([record.swapped_tokens for record in records])
        if self._found is not None:
            asked, hit, regret = self._found
            asked.extend([record.asked_tokens for record in records])
            hit.extend([record.hit_tokens for record in records])
            regret.extend([record.regret_tokens for record in records])
        self.hit_tokens += sum([record.hit_tokens for record in records])
        self.rehit_tokens += sum([record.rehit_tokens for record in records])
        self.regret_tokens += sum([record.regret_tokens for record in records])

    def count(self, events: Sequence[Event]) -> None:
        """These allocations could not be met."""
        self.causes.update([event.cause for event in events])

    def __len__(self) -> int:
        return len(self.end_ps)

    # Which of them. A choice is a byte for each, 1 for those that are meant.

    def arrived_in(self, stretches_ps: Sequence[tuple[int, int]]) -> bytearray:
        """Those that arrived in one of the stretches, both its ends included."""
        return _choice(self.arrival_ps, stretches_ps, opening=True)

    def finished_in(self, stretches_ps: Sequence[tuple[int, int]]) -> bytearray:
        """Those that finished in one of the stretches, its end included and not its start.

        As with tokens: what comes out at the very moment at which a stretch opens belongs to the step before it.
        """
        return self.finished(_choice(self.end_ps, stretches_ps, opening=False))

    def finished(self, chosen: bytearray) -> bytearray:
        """Those of the chosen that finished."""
        return bytearray(one and end == _FINISHED for one, end in zip(chosen, self._end, strict=True))

    # What of those: times in picoseconds, of those that got so far.

    def queue_ps(self, chosen: bytearray) -> "array[int]":
        """Arrival to the first step that computes something of the request."""
        return array("q", _lasting(compress(self.arrival_ps, chosen), compress(self._scheduled_ps, chosen)))

    def prefill_ps(self, chosen: bytearray) -> "array[int]":
        """First scheduled to first token: the rest of the TTFT."""
        return array("q", _lasting(compress(self._scheduled_ps, chosen), compress(self._first_token_ps, chosen)))

    def ttft_ps(self, chosen: bytearray) -> "array[int]":
        """Arrival to first output token, queueing included."""
        return array("q", _lasting(compress(self.arrival_ps, chosen), compress(self._first_token_ps, chosen)))

    def e2e_ps(self, chosen: bytearray) -> "array[int]":
        """Arrival to end."""
        return array("q", _lasting(compress(self.arrival_ps, chosen), compress(self.end_ps, chosen)))

    def tpot_ps(self, chosen: bytearray) -> "array[float]":
        """(E2E - TTFT) / (output - 1) of finished requests of two tokens or more; with samples, of the longest."""
        parts = (compress(column, chosen) for column in (self._first_token_ps, self.end_ps, self.gaps))
        return array(
            "d", ((end - first) / gaps for first, end, gaps in zip(*parts, strict=True) if gaps and first >= 0)
        )

    def how_many(self, chosen: bytearray, met: Callable[[int, int, int], bool]) -> int:
        """How many of the chosen, which have all got a token, `met` says yes to: of (TTFT, E2E, gaps)."""
        columns = (self.arrival_ps, self._first_token_ps, self.end_ps, self.gaps)
        parts = (compress(column, chosen) for column in columns)
        return sum(met(first - came, end - came, gaps) for came, first, end, gaps in zip(*parts, strict=True))

    def found_tokens(self, chosen: bytearray) -> tuple[int, int, int]:
        """Prompt tokens asked, found cached, and missed although they had been cached. Only where something caches."""
        assert self._found is not None
        asked, hit, regret = (sum(compress(column, chosen)) for column in self._found)
        return asked, hit, regret


_NUMBERS = {end: number for number, end in enumerate(ENDS)}


def _mark(time_ps: int | None) -> int:
    return _NEVER if time_ps is None else time_ps


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
