"""One scheduling pass after another: join, prefill if anybody can, else decode; then the results.

With overlap a pass is planned while the batch of the pass before it is in flight. The order of things within a pass is
SGLang's, because each of them changes what the next one finds.
"""

from collections import deque
from dataclasses import dataclass, field

from kvsim.memory.radix.interface import PrefixTree
from kvsim.scheduling.sglang.policy.admission import Admission, Lacking, Verdict
from kvsim.scheduling.sglang.policy.order import Order
from kvsim.scheduling.sglang.policy.ratio import NewTokenRatio
from kvsim.scheduling.sglang.policy.retraction import retract
from kvsim.scheduling.sglang.request import Batch, Request
from kvsim.scheduling.sglang.rows import Rows
from kvsim.scheduling.sglang.settings import Settings, release_rules


@dataclass(slots=True, eq=False)
class Pass:
    """What one pass decided."""

    mode: str = "idle"
    """prefill, decode, mixed or idle."""
    scheduled: list[tuple[Request, int]] = field(default_factory=list)
    """Requests that run and the tokens that they compute, in the order of the batch."""
    prefill_tokens: int = 0
    """How many of those belong to prompts."""
    admitted: list[tuple[Request, int]] = field(default_factory=list)
    """Requests that got their first slots, again perhaps, and the tokens that they found cached."""
    short: Lacking | None = None
    """The one of the waiting for whom there was no room."""
    lacking: tuple[int, int] | None = None
    """(slots that all who decode need together, slots that there were), where some had to give way."""
    retracted: list[Request] = field(default_factory=list)
    aborted: list[Request] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class _Flight:
    """A batch whose result is not in yet, as it was when it started."""

    requests: list[Request]
    prefills: bool
    decoding: frozenset[Request]


class SglangScheduler:
    """SGLang's scheduler. A pass is `plan`, then `settle`; with overlap the latter deals with the pass before.

    Who knows better than `max_new` when a request ends calls `output` and `keep` in the place of `settle`, and sets
    `finished` in between.
    """

    def __init__(self, tree: PrefixTree, settings: Settings, *, eviction: str = "lru") -> None:
        self.rules = release_rules()
        self.settings = settings
        self.rows = Rows(tree)
        self.ratio = NewTokenRatio(self.rules, settings.schedule_conservativeness)
        self.waiting: list[Request] = []
        self.running = Batch()
        self.cut: Request | None = None
        """The request whose prompt is computed in part."""
        self._order = Order(settings.schedule_policy, self.rows, self.rules, touches=eviction == "lru")
        self._last: Batch | None = None
        self._flights: deque[_Flight] = deque()
        """Batches whose result is not in yet, oldest first."""
        self._submitted = 0
        self._processed = 0

    def submit(self, request: Request) -> None:
        """Put a request at the end of the queue. Mutates."""
        request.arrived, request.arrived_processed = self._submitted, self._processed
        self._submitted += 1
        self.waiting.append(request)

    def plan(self) -> Pass:
        """Decide who runs and take their slots. Mutates."""
        made = Pass()
        self._join()
        batch = self._prefill(made) or self._decode(made)
        if batch is not None:
            self._processed += batch.extended
            self._flights.append(_Flight(list(batch.requests), batch.prefills, batch.decoding))
        self._last = batch
        return made

    def settle(self) -> list[Request]:
        """Deal with the result that is due; who got a token by it, in order, some of them their last. Mutates."""
        due = len(self._flights) - (self.settings.overlap and self._last is not None)
        served = self.output() if due > 0 else []
        self.keep(served)
        return [request for request, _ in served]

    def output(self) -> list[tuple[Request, bool]]:
        """The result of the oldest batch in flight: who got a token, and whether at the end of a prompt. Mutates."""
        due = self._flights.popleft()
        served = []
        for request in due.requests:
            if request.retracted or (request.finished and request.middle_chunks <= 0):
                continue
            if request.middle_chunks > 0:
                request.middle_chunks -= 1
                continue
            request.emit()
            served.append((request, due.prefills and request not in due.decoding))
        return served

    def keep(self, served: list[tuple[Request, bool]]) -> None:
        """Hand over to the tree what those who finished, or completed a prompt, have computed. Mutates."""
        book = self.rows.pool.book
        if book is not None:
            book.free.hold()
        for request, prompt_done in served:
            if request.finished:
                self.rows.release(request, keep=True)
            elif prompt_done:
                self.rows.stash(request)
        if book is not None:
            book.free.let_go()

    def leave(self, request: Request) -> None:
        """Its client is gone, or it has been dealt with: a live request is out of everything. Mutates; O(waiting)."""
        if request in self.waiting:
            self.waiting.remove(request)
        if request is self.cut:
            self.cut = None
        request.finished, request.middle_chunks = True, 0
        if request.holds:
            self.rows.release(request, keep=True)

    @property
    def steady(self) -> bool:
        """The last pass decoded, so that whoever runs is in the running batch. Pure."""
        return self._last is self.running and not self.running.prefills

    @property
    def ages(self) -> bool:
        """Each pass counts for the age of those that come later: they must know which one they came in. Pure."""
        return self._order.policy == "hrrn" and self.running.extended > 0

    def leapt(self, steps: int) -> list[tuple[Request, bool]]:
        """So many passes are over in which everybody decoded, in room that nobody had to be evicted for. Mutates.

        Returns what `output` does for the last of them.
        """
        running = self.running
        if running.drop(set()):
            running.full = False
        self._processed += steps * running.extended
        for request in running.requests:
            request.emit(steps)
        self.rows.grow(running.requests, steps)
        for _ in range(steps):
            self.ratio.decay()
        return [(request, False) for request in running.requests]

    def _join(self) -> None:
        """Those whose prompt was completed in the last pass decode from now on; those who finished leave."""
        gone: set[Request] = set()
        if self.cut is not None:
            gone.add(self.cut)
            self.rows.stash(self.cut)
        last, running = self._last, self.running
        if last is not None and last.prefills:
            if last.chunked is not None:
                gone.add(last.chunked)
            if last.drop(gone):
                running.full = False
            if last.requests and not running.requests:
                self.running = running = last
            else:
                running.requests = running.requests + last.requests
        if running.drop(set()):
            running.full = False

    def _prefill(self, made: Pass) -> Batch | None:
        """A batch of prompts, or of what is left of them, if there is anybody to admit."""
        running = self.running
        if not running.requests:
            running.full = False
        if self.cut is None and (running.full or not self.waiting):
            return None
        if self.cut is None and self._rows_left(held=0) <= 0:
            running.full = True
            return None
        self._order.sort(self.waiting, self._processed)
        admission = Admission(
            self.rows,
            running.requests,
            settings=self.settings,
            rules=self.rules,
            ratio=self.ratio.value,
            riding=len(running.requests) if self.settings.mixes else 0,
        )
        went_on = self.cut
        if went_on is not None:
            went_on.filled = went_on.tokens
            limit = self._order.chunk_limit(went_on, self.waiting, admission.chunk_left or 0)
            self.cut = admission.go_on(went_on, limit)
        self._admit(admission, went_on)
        made.short, admitted = admission.short, admission.admitted
        if not admitted:
            return None
        gone = set(admitted)
        self.waiting = [request for request in self.waiting if request not in gone]
        self.cut = admission.cut or self.cut
        if self.cut is not None:
            self.cut.middle_chunks += 1
        self.rows.extend(admitted)
        made.mode = "prefill"
        made.scheduled = [(request, request.end - request.prefix) for request in admitted]
        made.admitted = [(request, request.prefix) for request in admitted if request is not went_on]
        made.prefill_tokens = sum(tokens for _, tokens in made.scheduled)
        batch = Batch(admitted, prefills=True, chunked=self.cut, extended=made.prefill_tokens)
        if self.settings.mixes and running.requests:
            self._ride_along(batch, made)
        return batch

    def _admit(self, admission: Admission, went_on: Request | None) -> None:
        """Try the waiting in order until one does not fit."""
        running = self.running
        for request in self.waiting:
            if admission.state() is Verdict.SPENT:
                return
            if len(admission.admitted) >= self._rows_left(held=int(went_on is not None)):
                running.full = True
            if running.full:
                return
            request.filled = request.tokens
            self.rows.find(request, request.tokens - 1)
            verdict = admission.add(request, one_is_cut=self.cut is not None)
            if verdict is Verdict.NO_ROOM:
                running.full = bool(admission.admitted or running.requests)
            if verdict is not Verdict.GO_ON:
                return

    def _rows_left(self, *, held: int) -> int:
        """Requests that one batch may have beside the running ones, `held` of which have a row already."""
        most = self.settings.max_running_requests
        return min(most - len(self.running.requests), most - self.rows.held + held)

    def _ride_along(self, batch: Batch, made: Pass) -> None:
        """Mixed chunk: running requests that can get a slot decode in the prefill; else they sit this pass out."""
        running = self.running
        if self._drop_finishing():
            running.full = False
        if not running.requests or not self.rows.decode_fits(running.requests):
            return
        self.rows.decode(running.requests)
        for request in running.requests:
            request.filled = request.tokens
            request.end = request.committed
        batch.requests = batch.requests + running.requests
        batch.decoding = frozenset(running.requests)
        batch.extended += len(running.requests)
        made.mode = "mixed"
        made.scheduled += [(request, 1) for request in running.requests]
        self.running = Batch(full=running.full)

    def _decode(self, made: Pass) -> Batch | None:
        """All running requests decode, as many as slots can be had for."""
        running = self.running
        if not running.requests:
            return None
        left = self._drop_finishing()
        if not running.requests:
            running.full = False
            return None
        fits = self.rows.decode_fits(running.requests)
        if not fits and left:  # the result in flight will free slots
            running.full = False
            return None
        if fits:
            self.ratio.decay()
        else:
            made.lacking = self.rows.decode_slots(running.requests), self.rows.pool.free
            running.requests, made.retracted, made.aborted = retract(self.rows, running.requests, self.rules)
            self.ratio.after_retraction(running.requests)
            for request in made.retracted:
                self.submit(request)
        if left or not fits:
            running.full = False
        if not running.requests:
            return None
        self.rows.decode(running.requests)
        running.prefills = False
        made.mode = "decode"
        made.scheduled = [(request, 1) for request in running.requests]
        return running

    def _drop_finishing(self) -> bool:
        """With overlap, those whose result in flight is their last one sit out; True if there were any."""
        in_flight = {request for flight in self._flights for request in flight.requests}
        finishing = {r for r in self.running.requests if r in in_flight and r.outputs + 1 >= r.max_new}
        return self.running.drop(finishing) if finishing else False
