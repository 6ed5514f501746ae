"""What happened to each request: the request records, and the list of blocked allocations."""

from typing import NamedTuple

from kvsim.request import Request, Sequence
from kvsim.step import Short


class Journey:
    """One request on its way: its truth, which no policy sees, and the times that matter."""

    __slots__ = (
        "allowed",
        "blocked_cause",
        "first_scheduled_ps",
        "first_token_ps",
        "high_water",
        "last_token_ps",
        "limit",
        "lost_tokens",
        "preemptions",
        "recomputed_tokens",
        "request",
        "sequence",
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
        self.recomputed_tokens = 0
        self.blocked_cause: str | None = None
        """The cause of the open episode in which it cannot get its slots."""

    @property
    def written_in_all(self) -> int:
        """Tokens whose KV it will have written at its end; the last sampled token is never computed."""
        return self.request.prompt_tokens + self.allowed - 1


def entering(request: Request, max_model_len: int) -> Journey:
    """A request on its way in: the truth about its end, and the sequence that policies will see."""
    allowed, limit = allowed_output(request, max_model_len)
    sequence = Sequence(
        request.id,
        request.prompt_tokens,
        request.max_tokens,
        request.arrival_ps,
        request.priority,
        request.tenant,
        tokens=request.prompt_tokens,
    )
    return Journey(request, sequence, allowed, limit)


def allowed_output(request: Request, max_model_len: int) -> tuple[int, str]:
    """Output tokens that `request` will emit if nothing stops it, and the finish reason that this means."""
    room = max(0, max_model_len - request.prompt_tokens)
    allowed, reason = request.output_tokens, "eos"
    if request.max_tokens is not None and request.max_tokens < allowed:
        allowed, reason = request.max_tokens, "max_tokens"
    if room < allowed:
        allowed, reason = room, "max_model_len"
    return allowed, reason


class Ended(NamedTuple):
    """The record of one request, times in picoseconds."""

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

    def arrive(self, journey: Journey) -> None:
        """A request has arrived."""
        self.arrived += 1
        self.last_arrival_ps = journey.request.arrival_ps
        if journey.limit == "max_model_len" and journey.allowed:
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

    def preempted(self, now_ps: int, journey: Journey, lost_tokens: int) -> None:
        """A running request lost its KV."""
        self.losses.append(Loss(now_ps, journey.request.id, lost_tokens))
        journey.preemptions += 1
        journey.lost_tokens += lost_tokens
        journey.high_water = max(journey.high_water, lost_tokens)

    def written(self, journey: Journey, before: int, tokens: int) -> None:
        """A chunk is written: what lies below the high water mark was computed before."""
        if before < journey.high_water:
            journey.recomputed_tokens += min(journey.high_water, before + tokens) - before

    def end(self, now_ps: int, journey: Journey, end: str, generated: int) -> None:
        """The request has ended for good."""
        request = journey.request
        self.ended.append(
            Ended(
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
            )
        )
