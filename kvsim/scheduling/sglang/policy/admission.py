"""Who of the waiting joins one pass of prefill: budgets of tokens computed, and of tokens to fit until the end."""

from enum import Enum, auto
from typing import NamedTuple

from kvsim.memory.radix.interface import PrefixTree
from kvsim.scheduling.sglang.request import Request
from kvsim.scheduling.sglang.rows import Rows
from kvsim.scheduling.sglang.settings import Rules, Settings


class Verdict(Enum):
    """Whether the next waiting request may be tried."""

    GO_ON = auto()
    NO_ROOM = auto()
    """Slots are, or may become, short."""
    SPENT = auto()
    """The pass computes enough already."""


class Lacking(NamedTuple):
    """A request that needs so many slots, now or until its end, of which it could get so many."""

    request: Request
    need_slots: int
    room_slots: int


class Admission:
    """One pass: starts from what the running requests may still need, and charges whoever is admitted."""

    def __init__(
        self, rows: Rows, running: list[Request], *, settings: Settings, rules: Rules, ratio: float, riding: int
    ) -> None:
        """`riding` decoding requests are computed in the same pass."""
        self._rows, self._rules, self._ratio, self._running = rows, rules, ratio, running
        self._page = rows.pool.page_size
        self._input_left = settings.max_prefill_tokens - riding
        chunk = settings.chunked_prefill_size
        self.chunk_left = None if chunk is None else chunk - riding
        self._shortest_first = settings.schedule_policy == "shortest-prefill-first"
        self._now: float = riding
        """Tokens that those admitted take in this pass."""
        self._until_end: float = riding + sum(
            min(request.left, rules.clip_new_tokens) * self._share(request) for request in running
        )
        """Tokens that everybody is expected to take until its end."""
        self._drain: list[tuple[float, int]] | None = None
        self.admitted: list[Request] = []
        self.cut: Request | None = None
        """The one admitted whose prompt goes on in the next pass."""
        self.short: Lacking | None = None
        """The one for whom there was no room."""

    def state(self) -> Verdict:
        """Whether there is anything left to give. Pure."""
        if self._room_until_end() <= 0 or self._room_now() <= 0:
            return Verdict.NO_ROOM
        if self._input_left <= 0 or (self.chunk_left is not None and self.chunk_left <= 0):
            return Verdict.SPENT
        return Verdict.GO_ON

    def go_on(self, request: Request, limit: int | None) -> Request | None:
        """The next chunk, of at most `limit` tokens, of a prompt begun earlier; the request if another follows."""
        assert self.chunk_left is not None
        most = min(self.chunk_left, int(self._room_until_end()))
        if most <= 0:  # it must go on, or its slots never come free
            most = self.chunk_left
        if limit is not None:
            most = min(most, limit)
        missing = request.tokens - request.prefix
        request.end = request.prefix + min(missing, most)
        cut = missing > most
        self._admit(request, 0 if cut else self._clipped(request.max_new))
        return request if cut else None

    def add(self, request: Request, *, one_is_cut: bool) -> Verdict:
        """Try a waiting request that was just looked up. `one_is_cut`: another's prompt goes on after this pass."""
        tree = self._rows.tree
        if request.ignore_eos and not tree.shares:
            return self._add_by_drain(request)
        assert request.found is not None
        tree.lock(request.found)
        verdict = self._add_by_estimate(request, tree, one_is_cut=one_is_cut)
        tree.unlock(request.found)
        return self.state() if verdict is None else verdict

    def _add_by_estimate(self, request: Request, tree: PrefixTree, *, one_is_cut: bool) -> Verdict | None:
        """None: admitted."""
        missing = request.tokens - request.prefix
        need = missing + self._clipped(max(0, request.left)) + self._page
        if need >= self._room_until_end():
            return self._no_room(request, need)
        charge = self._rows.pool.ceil(missing)
        if self.chunk_left is None:
            if self.admitted and charge >= self._input_left:
                return Verdict.SPENT
            request.end = request.tokens
        elif charge <= self.chunk_left:
            request.end = request.tokens
        else:
            if one_is_cut and self._shortest_first:
                return Verdict.SPENT
            request.end = self._rows.pool.floor(request.prefix + self._rows.pool.floor(self.chunk_left))
            if request.end <= request.prefix:
                return Verdict.SPENT
            self.cut = request
        assert request.found is not None
        tree.lock(request.found)
        request.locked = request.found
        self._admit(request, 0 if self.cut is request else self._clipped(request.max_new))
        return None

    def _add_by_drain(self, request: Request) -> Verdict:
        """Nothing is shared and everybody runs to its full length: play out when slots come free."""
        missing = request.tokens - request.prefix
        need = self._rows.pool.ceil(missing) + self._page
        if need > min(self._room_now(), self._room_until_end()):
            return self._no_room(request, need)
        self._expect(request)
        assert self._drain is not None
        free, reserve = self._room_now() - need, self._rules.drain_reserve_tokens
        for index, (left, occupied) in enumerate(self._drain):
            going = len(self._drain) - index
            if free - left * going <= reserve * going:
                return self._no_room(request, need)
            free += occupied
        if self.chunk_left is None or missing <= self.chunk_left:
            request.end = request.tokens
            self._admit(request, self._clipped(request.max_new))
        else:
            if self.chunk_left <= 0:
                return Verdict.SPENT
            request.end = request.prefix + self.chunk_left
            self.cut = request
            self._admit(request, 0)
        return self.state()

    def _no_room(self, request: Request, need: int) -> Verdict:
        self.short = Lacking(request, need + 1, max(0, int(min(need, self._room_now(), self._room_until_end()))))
        return Verdict.NO_ROOM

    def _expect(self, request: Request) -> None:
        """Put a request among those that drain: (tokens to come, tokens held), soonest to end first."""
        if self._drain is None:
            everybody = [request, *self._running, *self.admitted]
            self._drain = sorted(filter(None, map(self._to_come, everybody)), key=lambda entry: entry[0])
        elif entry := self._to_come(request):
            # SGLang's search stops at the last place but one, so a request that would drain last comes before the last.
            last = max(0, len(self._drain) - 1)
            place = next((i for i, (left, _) in enumerate(self._drain) if entry[0] <= left), last)
            self._drain.insert(place, entry)

    def _to_come(self, request: Request) -> tuple[float, int] | None:
        left = request.max_new * self._share(request) - request.outputs
        return (left, request.tokens) if left > 0 else None

    def _admit(self, request: Request, new_tokens: int) -> None:
        self.admitted.append(request)
        charge = self._rows.pool.ceil(request.end - request.prefix)
        self._now += charge + self._page
        self._until_end += charge + self._page + new_tokens
        self._input_left -= charge
        if self.chunk_left is not None:
            self.chunk_left -= charge

    def _share(self, request: Request) -> float:
        """What part of its remaining output a request is expected to make."""
        return 1.0 if request.ignore_eos else self._ratio

    def _clipped(self, tokens: int) -> int:
        return min(tokens, self._rules.clip_new_tokens)

    def _room_now(self) -> float:
        return self._rows.reachable - self._now

    def _room_until_end(self) -> float:
        return self._rows.reachable - self._until_end
