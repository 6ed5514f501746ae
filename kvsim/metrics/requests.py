"""What happened to each request: the request records, and the list of blocked allocations."""

from collections.abc import Iterable
from typing import NamedTuple

from kvsim.content import ENDLESS, LAYERS, Content, Run, own_stream
from kvsim.request import Request, Sequence
from kvsim.step import Short


class Journey:
    """One request on its way: its truth, which no policy sees, and the times that matter.

    A request of several samples has one for each, and is over when all of them are.
    """

    __slots__ = (
        "allowed",
        "asked_tokens",
        "blocked_cause",
        "ended",
        "first_scheduled_ps",
        "first_token_ps",
        "high_water",
        "hit_layers",
        "hit_tokens",
        "last_token_ps",
        "limit",
        "lost_tokens",
        "preemptions",
        "recomputed_tokens",
        "regret_tokens",
        "rehit_tokens",
        "request",
        "sequence",
        "several",
        "swapped_tokens",
    )

    def __init__(self, request: Request, sequence: Sequence, allowed: int, limit: str) -> None:
        self.request = request
        self.sequence = sequence
        self.allowed = allowed
        """Output tokens it will have emitted when it finishes."""
        self.limit = limit
        """The finish reason it is heading for: eos, max_tokens or max_model_len."""
        self.first_scheduled_ps: int | None = None
        self.first_token_ps: int | None = None
        self.last_token_ps = 0
        self.high_water = 0
        """Most tokens it ever had written: what is written below that is computed again."""
        self.preemptions = 0
        self.lost_tokens = 0
        self.swapped_tokens = 0
        self.recomputed_tokens = 0
        self.asked_tokens = 0
        """Prompt tokens that it came with when it was first admitted."""
        self.hit_tokens = 0
        """Those of them that it found cached."""
        self.hit_layers = NO_HITS
        """Those by layer of sharing."""
        self.regret_tokens = 0
        """Prompt tokens that it did not find, although they had been cached once."""
        self.rehit_tokens = 0
        """Tokens that it found cached when it was admitted again, after preemptions."""
        self.several: list[Journey] | None = None
        """Those of all samples of the request, the first one first, if it has several; the same list in each."""
        self.ended: tuple[str, int] | None = None
        """How the sample has ended, and how many tokens it got."""
        self.blocked_cause: str | None = None
        """The cause of the open episode in which it cannot get its slots."""

    @property
    def samples(self) -> "list[Journey]":
        """Those of all samples of the request, the first one's first."""
        # A list kept in it would make a ring of every journey, which only the garbage collector could undo.
        return self.several or [self]

    def cut(self, most_tokens: int) -> None:
        """The engine lets none of its samples emit more tokens than this. Mutates."""
        for sample in self.samples:
            if most_tokens < sample.allowed:
                sample.allowed, sample.limit = most_tokens, "max_model_len"

    @property
    def written_in_all(self) -> int:
        """Tokens whose KV it will have written at its end; the last sampled token is never computed."""
        return self.request.prompt_tokens + self.allowed - 1

    @property
    def furthest(self) -> int:
        """The same for the longest of those that will fork off this sequence, itself included."""
        if not self.sequence.samples:
            return self.written_in_all
        return max(sample.written_in_all for sample in self.samples)

    @property
    def done(self) -> bool:
        """It has emitted its last token and is still there: static batching keeps it to the end of its batch."""
        return not self.sequence.decoding and self.sequence.written == self.written_in_all


NO_HITS = (0,) * len(LAYERS)
"""Nothing found in any layer of sharing."""

MOST_SAMPLES = 1 << 16
"""More samples than this no request has."""


def entering(request: Request, max_model_len: int) -> Journey:
    """A request on its way in, or its first sample: the truth about its end, and the sequence that policies will see.

    The other samples, if there are any, stand beside it in `samples`. Their sequences have negative ids.
    """
    first = _sample(request, 0, request.output_tokens, max_model_len)
    for number, output in enumerate(request.more_outputs, 1):
        other = _sample(request, number, output, max_model_len)
        first.several = first.several or [first]
        first.several.append(other)
        other.several = first.several
        first.sequence.request = other.sequence.request = request.id
    return first


def _sample(request: Request, number: int, output_tokens: int, max_model_len: int) -> Journey:
    allowed, limit = allowed_output(request, max_model_len, output_tokens)
    sequence_id = -(request.id * MOST_SAMPLES + number) if number else request.id
    sequence = Sequence(
        sequence_id,
        request.prompt_tokens,
        request.max_tokens,
        request.arrival_ps,
        request.priority,
        request.tenant,
        tokens=request.prompt_tokens,
        content=_content(request, sequence_id),
    )
    return Journey(request, sequence, allowed, limit)


def _content(request: Request, sequence_id: int) -> Content | None:
    """What a sequence holds, prompt and output; None: nobody else has any of it."""
    if request.content is None and not request.more_outputs:
        return None
    prompt = Run(own_stream(request.id), 0, request.prompt_tokens)
    runs = (prompt,) if request.content is None else request.content.runs
    return Content([*runs, Run(own_stream(sequence_id), request.prompt_tokens, ENDLESS)])


def whose(sequence_id: int) -> tuple[int, int]:
    """The id of the request, and the number of the sample, that a sequence of this id is."""
    return (sequence_id, 0) if sequence_id >= 0 else divmod(-sequence_id, MOST_SAMPLES)


def allowed_output(request: Request, max_model_len: int, output_tokens: int | None = None) -> tuple[int, str]:
    """Output tokens that `request` will emit if nothing stops it, and the finish reason that this means.

    `output_tokens` is the true length of the sample in question; None: of the first.
    """
    room = max(0, max_model_len - request.prompt_tokens)
    allowed, reason = request.output_tokens if output_tokens is None else output_tokens, "eos"
    if request.max_tokens is not None and request.max_tokens < allowed:
        allowed, reason = request.max_tokens, "max_tokens"
    if room < allowed:
        allowed, reason = room, "max_model_len"
    return allowed, reason


class Ended(NamedTuple):
    """The record of one request, times in picoseconds; tokens and counts are sums over its samples."""

    id: int
    arrival_ps: int
    prompt_tokens: int
    output_tokens: int
    max_tokens: int | None
    priority: int
    tenant: str
    first_scheduled_ps: int | None
    first_token_ps: int | None
    end_ps: int
    end: str
    finish_reason: str | None
    generated_tokens: int
    preemptions: int
    lost_tokens: int
    recomputed_tokens: int
    swapped_tokens: int = 0
    samples: int = 1
    longest_tokens: int = 0
    """Output tokens of its longest sample, where it has several."""
    asked_tokens: int = 0
    hit_tokens: int = 0
    rehit_tokens: int = 0
    hit_layers: tuple[int, ...] = NO_HITS
    """`hit_tokens` by layer of sharing, in the order of `content.LAYERS`."""
    regret_tokens: int = 0

    @property
    def gaps(self) -> int:
        """Gaps between the tokens of its longest sample."""
        return max(0, (self.longest_tokens or self.generated_tokens) - 1)


class Event(NamedTuple):
    """One allocation that could not be met at once, or one request refused."""

    time_ps: int
    request: int
    cause: str
    outcome: str
    need_slots: int
    free_slots: int
    largest_hole_slots: int


class Loss(NamedTuple):
    """One preemption."""

    time_ps: int
    request: int
    tokens: int
    swapped_tokens: int = 0


class RequestLog:
    """The records of all requests that have ended, and the blocked allocations, in the order of time."""

    def __init__(self) -> None:
        self.ended: list[Ended] = []
        self.events: list[Event] = []
        self.losses: list[Loss] = []
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

    @property
    def preemptions(self) -> int:
        """How often a running request lost its KV."""
        return len(self.losses)

    def preempted(self, now_ps: int, journey: Journey, lost_tokens: int, swapped_tokens: int = 0) -> None:
        """A running request lost its KV, or had it moved to host memory."""
        self.losses.append(Loss(now_ps, journey.request.id, lost_tokens, swapped_tokens))
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
        regret_tokens: int = 0,
    ) -> None:
        """A waiting request starts to run, with so many of its tokens found cached (by layer: `layers`)."""
        journey.blocked_cause = None
        if journey.first_scheduled_ps is None:
            journey.first_scheduled_ps = now_ps
            journey.asked_tokens = journey.request.prompt_tokens
            journey.hit_tokens, journey.hit_layers = hit_tokens, layers
            journey.regret_tokens = regret_tokens
            self.hit_layers = added(self.hit_layers, layers)
        else:
            journey.rehit_tokens += hit_tokens
            self.rehit_layers = added(self.rehit_layers, layers)

    def written(self, journey: Journey, before: int, tokens: int) -> None:
        """A chunk is written: what lies below the high water mark was computed before."""
        if before < journey.high_water:
            journey.recomputed_tokens += min(journey.high_water, before + tokens) - before

    def end(self, now_ps: int, journey: Journey, end: str, generated: int) -> bool:
        """A request, or one sample of it, has ended for good; True if the whole request has."""
        samples = journey.several
        if samples is None:
            self.ended.append(_record(now_ps, journey, end, generated))
            return True
        journey.ended = end, generated
        ended = [sample.ended for sample in samples if sample.ended is not None]
        if len(ended) < len(samples):
            return False
        ends = {how for how, _ in ended}
        outputs = [tokens for _, tokens in ended]
        # Where the samples end in different ways the request has ended badly.
        end = next(how for how in _WORST_FIRST if how in ends)
        self.ended.append(
            _record(now_ps, samples[0], end, sum(outputs))._replace(
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
                regret_tokens=sum(sample.regret_tokens for sample in samples),
            )
        )
        return True


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
    )


def added(*layers: tuple[int, ...]) -> tuple[int, ...]:
    """Tokens by layer of sharing, of all together."""
    return tuple(map(sum, zip(*layers, strict=True)))


_WORST_FIRST = ("rejected", "aborted", "cancelled", "unfinished", "finished")


def _first(times_ps: Iterable[int | None]) -> int | None:
    return min((time_ps for time_ps in times_ps if time_ps is not None), default=None)
