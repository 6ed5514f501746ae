"""What happened to each request: the request records, and the list of blocked allocations."""

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kvsim.metrics.requests.journey import Journey
from kvsim.metrics.requests.marks import Marks
from kvsim.metrics.requests.records import NO_HITS, Ended, Event, Loss, added
from kvsim.metrics.requests.refusals import Refusals
from kvsim.step import Short

if TYPE_CHECKING:
    from kvsim.metrics.tables.interface import Pieces


class RequestLog:
    """The records of the requests that have ended, of allocations that failed and of preemptions, in order of time.

    All of them are kept, or, with `pieces`, handed over whenever there are many. With `caches` what was found cached
    counts; `classes` are the classes of service that are told apart.
    """

    def __init__(
        self,
        pieces: "Pieces | None" = None,
        *,
        caches: bool = True,
        recalls: bool = True,
        classes: Sequence[str] = (),
    ) -> None:
        self.ended: list[Ended] = []
        self.events: list[Event] = []
        self.losses: list[Loss] = []
        self.cancelled: list[Ended] = []
        """Those of `ended` that were cancelled since `step_over`."""
        self.refusals = Refusals()
        self._into = pieces
        self._most = sys.maxsize if pieces is None else pieces.rows
        self._marks = Marks(caches=caches, recalls=recalls, classes=classes)
        self._marked = self._counted = 0
        """How many of `ended` and `events` the marks know already."""
        self._handed_over = self._preempted = 0
        """Records, and preemptions, that are kept no more."""
        self._open_losses: dict[int, None] = {}
        """Those of the preemptions, counted from 0, whose requests have not come back, the oldest first."""
        self.arrived = 0
        self.last_arrival_ps = 0
        self.clipped = 0
        """Requests whose output was cut at the model's limit."""
        self.hit_layers = self.rehit_layers = NO_HITS
        """Tokens that were found cached, at first admissions and after preemptions, by layer of sharing."""

    def arrive(self, journey: Journey) -> None:
        """A request has arrived."""
        self.arrived += 1
        self.last_arrival_ps = journey.request.arrival_ps
        if journey.several is None:
            clipped = journey.limit == "max_model_len" and journey.allowed > 0
        else:
            clipped = any(sample.limit == "max_model_len" and sample.allowed for sample in journey.several)
        if clipped:
            self.clipped += 1

    def blocked(self, now_ps: int, journey: Journey, short: Short, outcome: str) -> None:
        """An allocation failed. A retry with the same cause, in the same episode, is no new event."""
        if journey.blocked_cause != short.cause:
            journey.blocked_cause = short.cause
            self.events.append(Event(now_ps, journey.request.id, short.cause, outcome, *short[1:]))
            if len(self.events) >= self._most:
                self._hand_over_events()

    def refused(self, now_ps: int, journey: Journey, short: Short) -> Ended:
        """A request that can never be served is refused on arrival."""
        self.arrive(journey)
        self.blocked(now_ps, journey, short, "reject")
        request = journey.request
        if short.cause != "queue":
            self.refusals.add(request.prompt_tokens, request.id, short.need_slots)
        records = [self.end(now_ps, sample, "rejected", 0) for sample in journey.samples]
        record = records[-1]
        assert record is not None
        return record

    @property
    def preemptions(self) -> int:
        """How often a running request lost its KV."""
        return self._preempted + len(self.losses)

    @property
    def ends(self) -> int:
        """How many requests have ended."""
        return self._handed_over + len(self.ended)

    def preempted(self, now_ps: int, journey: Journey, lost_tokens: int, swapped_tokens: int = 0) -> None:
        """A running request lost its KV, or had it moved to host memory."""
        self._close_loss(now_ps, journey)
        journey.open_loss = self.preemptions
        self._open_losses[journey.open_loss] = None
        self.losses.append(Loss(now_ps, journey.request.id, lost_tokens, swapped_tokens))
        # What may still change is kept, and everything after it, so that they stay in order.
        ready = next(iter(self._open_losses)) - self._preempted
        if ready >= self._most:
            self._hand_over_losses(ready)
        journey.preemptions += 1
        journey.lost_tokens += lost_tokens
        journey.swapped_tokens += swapped_tokens
        journey.high_water = max(journey.high_water, lost_tokens)

    def admitted(
        self,
        now_ps: int,
        journey: Journey,
        hit_tokens: int,
        layers: tuple[int, ...] = NO_HITS,
        regret_tokens: int | None = 0,
    ) -> None:
        """A waiting request starts to run, with so many of its tokens found cached (by layer: `layers`).

        `regret_tokens` of the others had been cached before; None: nobody can tell.
        """
        # A sample may lose what it was forked with before it was ever admitted by itself.
        self.resumed(now_ps, journey)
        if journey.first_scheduled_ps is None:
            journey.first_scheduled_ps = now_ps
            journey.asked_tokens = journey.request.prompt_tokens
            journey.hit_tokens, journey.hit_layers = hit_tokens, layers
            journey.regret_tokens = regret_tokens
            self.hit_layers = added(self.hit_layers, layers)
        else:
            journey.rehit_tokens += hit_tokens
            self.rehit_layers = added(self.rehit_layers, layers)

    def resumed(self, now_ps: int, journey: Journey) -> None:
        """A preempted request runs again."""
        journey.blocked_cause = None
        place = journey.open_loss
        if place is not None:
            kept = place - self._preempted
            self.losses[kept] = self.losses[kept]._replace(resumed_ps=now_ps)
            self._close_loss(now_ps, journey)

    def _close_loss(self, now_ps: int, journey: Journey) -> None:
        if journey.open_loss is not None:
            journey.away_ps += now_ps - self.losses[journey.open_loss - self._preempted].time_ps
            del self._open_losses[journey.open_loss]
            journey.open_loss = None

    def written(self, journey: Journey, before: int, tokens: int) -> None:
        """A chunk is written: what lies below the high water mark was computed before."""
        if before < journey.high_water:
            journey.recomputed_tokens += min(journey.high_water, before + tokens) - before

    def end(self, now_ps: int, journey: Journey, end: str, generated: int) -> Ended | None:
        """A request, or one sample of it, has ended for good; the record if the whole request has."""
        self._close_loss(now_ps, journey)
        if journey.several is None:
            record = _record(now_ps, journey, end, generated)
        else:
            journey.ended = end, generated
            if any(sample.ended is None for sample in journey.several):
                return None
            record = _record_of_all(now_ps, journey.several)
        self.ended.append(record)
        if record.end == "cancelled":
            self.cancelled.append(record)
        if len(self.ended) >= self._most:
            self._hand_over_ended()
        return record

    def step_over(self) -> None:
        """A step, or a leap, is over."""
        if self.cancelled:
            self.cancelled.clear()

    # What is left of them.

    def marks(self) -> Marks:
        """What the summary needs of all records so far; it grows with them."""
        self._mark_ended()
        self._mark_events()
        return self._marks

    def hand_over(self) -> None:
        """Give all records away; only their marks stay. Does nothing where they are kept. Mutates."""
        if self._into is not None:
            self._hand_over_ended()
            self._hand_over_events()
            self._hand_over_losses(len(self.losses))

    def _mark_ended(self) -> None:
        self._marks.add(self.ended[self._marked :] if self._marked else self.ended)
        self._marked = len(self.ended)

    def _mark_events(self) -> None:
        self._marks.count(self.events[self._counted :] if self._counted else self.events)
        self._counted = len(self.events)

    def _hand_over_ended(self) -> None:
        assert self._into is not None
        self._mark_ended()
        self._handed_over += len(self.ended)
        self._into.requests(self.ended)
        self.ended, self._marked = [], 0

    def _hand_over_events(self) -> None:
        assert self._into is not None
        self._mark_events()
        self._into.events(self.events)
        self.events, self._counted = [], 0

    def _hand_over_losses(self, count: int) -> None:
        """The first so many of those that are kept."""
        assert self._into is not None
        self._preempted += count
        self._into.losses(self.losses[:count])
        del self.losses[:count]


def _record(now_ps: int, journey: Journey, end: str, generated: int) -> Ended:
    request = journey.request
    return Ended(
        request.id,
        request.arrival_ps,
        request.prompt_tokens,
        journey.allowed,
        request.max_tokens,
        request.priority,
        request.tenant,
        journey.first_scheduled_ps,
        journey.first_token_ps,
        now_ps,
        end,
        journey.limit if end == "finished" else None,
        generated,
        journey.preemptions,
        journey.lost_tokens,
        journey.recomputed_tokens,
        journey.swapped_tokens,
        asked_tokens=journey.asked_tokens,
        hit_tokens=journey.hit_tokens,
        rehit_tokens=journey.rehit_tokens,
        hit_layers=journey.hit_layers,
        regret_tokens=journey.regret_tokens,
        session=request.session,
        turn=None if request.session is None else request.turn,
        slo_class=request.slo_class,
        away_ps=journey.away_ps,
    )


def _record_of_all(now_ps: int, samples: list[Journey]) -> Ended:
    """The record of a request of several samples, all of which have ended."""
    ended = [sample.ended for sample in samples if sample.ended is not None]
    ends = {how for how, _ in ended}
    outputs = [tokens for _, tokens in ended]
    # Where the samples end in different ways the request has ended badly.
    end = next(how for how in _WORST_FIRST if how in ends)
    return _record(now_ps, samples[0], end, sum(outputs))._replace(
        output_tokens=sum(sample.allowed for sample in samples),
        first_scheduled_ps=_first(sample.first_scheduled_ps for sample in samples),
        first_token_ps=_first(sample.first_token_ps for sample in samples),
        preemptions=sum(sample.preemptions for sample in samples),
        lost_tokens=sum(sample.lost_tokens for sample in samples),
        recomputed_tokens=sum(sample.recomputed_tokens for sample in samples),
        swapped_tokens=sum(sample.swapped_tokens for sample in samples),
        samples=len(samples),
        longest_tokens=max(outputs),
        asked_tokens=sum(sample.asked_tokens for sample in samples),
        hit_tokens=sum(sample.hit_tokens for sample in samples),
        rehit_tokens=sum(sample.rehit_tokens for sample in samples),
        hit_layers=added(*(sample.hit_layers for sample in samples)),
        regret_tokens=_sum(sample.regret_tokens for sample in samples),
        away_ps=sum(sample.away_ps for sample in samples) // len(samples),
    )


_WORST_FIRST = ("rejected", "aborted", "cancelled", "unfinished", "finished")


def _sum(parts: Iterable[int | None]) -> int | None:
    """None where one of them is not known."""
    whole = 0
    for part in parts:
        if part is None:
            return None
        whole += part
    return whole


def _first(times_ps: Iterable[int | None]) -> int | None:
    return min((time_ps for time_ps in times_ps if time_ps is not None), default=None)
