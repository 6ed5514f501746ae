"""A request on its way: its truth, which no policy sees, and the times that matter."""

from kvsim.content import ENDLESS, Content, Run, own_stream
from kvsim.metrics.requests.records import NO_HITS
from kvsim.request import Request, Sequence


class Journey:
    """One request on its way: its truth, which no policy sees, and the times that matter.

    A request of several samples has one for each, and is over when all of them are.
    """

    __slots__ = (
        "allowed",
        "asked_tokens",
        "away_ps",
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
        "most_tokens",
        "open_loss",
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
        self.most_tokens: int | None = None
        """Output tokens that the engine lets it emit, where it says so itself."""
        self.first_scheduled_ps: int | None = None
        self.first_token_ps: int | None = None
        self.last_token_ps = 0
        self.high_water = 0
        """Most tokens it ever had written: what is written below that is computed again."""
        self.preemptions = 0
        self.lost_tokens = 0
        self.away_ps = 0
        """How long it was preempted, in all."""
        self.open_loss: int | None = None
        """Which of all preemptions of the run, counted from 0, it has not come back from yet."""
        self.swapped_tokens = 0
        self.recomputed_tokens = 0
        self.asked_tokens = 0
        """Prompt tokens that it came with when it was first admitted."""
        self.hit_tokens = 0
        """Those of them that it found cached."""
        self.hit_layers = NO_HITS
        """Those by layer of sharing."""
        self.regret_tokens: int | None = 0
        """Prompt tokens that it did not find, although they had been cached once; None: nobody can tell."""
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
            sample.most_tokens = most_tokens
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


def sequence_ids(request: Request) -> list[int]:
    """The ids of its sequences: its own, and those of its further samples."""
    return [_sequence_id(request, number) for number in range(1 + len(request.more_outputs))]


def _sequence_id(request: Request, number: int) -> int:
    return -(request.id * MOST_SAMPLES + number) if number else request.id


def _sample(request: Request, number: int, output_tokens: int, max_model_len: int) -> Journey:
    allowed, limit = allowed_output(request, max_model_len, output_tokens)
    sequence_id = _sequence_id(request, number)
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
    said, answer = request.prompt_tokens, request.answer
    if answer is not None and sequence_id == request.id:
        runs, said = [*runs, answer], said + answer.tokens
    return Content([*runs, Run(own_stream(sequence_id), said, ENDLESS)])


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
