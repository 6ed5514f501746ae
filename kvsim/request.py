"""A request as the workload makes it, and a sequence as the policies see it.

The two are kept apart on purpose: `Request` knows the true output length, `Sequence` does not, and allocators and
schedulers are only ever handed a `Sequence`.
"""

from dataclasses import dataclass

from kvsim.content import ENDLESS, Content, Run, own_stream

PS_PER_S = 10**12
"""The clock counts integer picoseconds, so that a leap over many steps adds up to the same bits as the steps."""


@dataclass(slots=True)
class Request:
    """One call: prompt tokens in, output tokens out.

    `arrival_ps` is the arrival in picoseconds from the start of the run. `output_tokens` is the *true* output length,
    hidden from every policy. `max_tokens` is what the client allows (None: up to the model's limit).
    `patience_ps`, when given, is how long after its arrival the client cancels.
    """

    id: int
    arrival_ps: int
    prompt_tokens: int
    output_tokens: int
    max_tokens: int | None = None
    patience_ps: int | None = None
    priority: int = 0
    tenant: str = ""
    more_outputs: tuple[int, ...] = ()
    """True output lengths of the further samples of the same prompt, where the call asks for more than one."""
    replacements: tuple[tuple[int, int, int], ...] = ()
    """Beam search: (output tokens emitted, sample that is dropped, sample that goes on in its place as well)."""
    content: Content | None = None
    """What the tokens of its prompt are; None: like no other prompt's."""
    session: int | None = None
    """The number of the session that it is a turn of; None: it stands alone."""
    turn: int = 0
    """Which turn of its session, or of an agent's part of it, from 0."""
    slo_class: str = ""
    """The class of service that its client has."""
    answer: Run | None = None
    """What the output of its first sample is, if that is known; None: like no other tokens."""


@dataclass(slots=True, eq=False)
class Sequence:
    """What a policy may know of a request, or of one of its samples, and how far it has come.

    `tokens` counts the known tokens (prompt plus generated) and `written` those whose KV exists. While the sequence
    decodes, both advance with the decode clock and are not touched one by one: then `written` is `origin + clock` and
    `tokens` one more (see `step.DecodeSet`); the stored numbers are brought up to date when it leaves the decode set.
    `admission` numbers the admissions of a run in order (-1: never admitted).
    """

    id: int
    prompt_tokens: int
    max_tokens: int | None
    arrival_ps: int = 0
    priority: int = 0
    tenant: str = ""
    declared: int = 0
    """Tokens that it was declared to hold in all, for policies that know by definition (0: nothing declared)."""
    tokens: int = 0
    written: int = 0
    origin: int = 0
    decoding: bool = False
    admission: int = -1
    request: int | None = None
    """The request that it is one of several samples of; None where it is the only one."""
    samples: tuple["Sequence", ...] = ()
    """Further samples of its prompt, that fork off once the prompt is computed (where the allocator can share)."""
    content: Content | None = None
    """What its tokens are, prompt and all that may follow; None where nobody has told."""
    seats: int = 1
    """Sequences that it is, or will be once its samples have forked off."""
    gone: bool = False
    """Left while it waited (cancelled); the queue drops it when it comes to it."""

    @property
    def contents(self) -> Content:
        """What its tokens are, prompt and all that may follow; where nobody has told, tokens that only it has."""
        return self.content or Content([Run(own_stream(self.id), 0, ENDLESS)])

    @property
    def reach(self) -> int:
        """Tokens that must be provided for when it is admitted: those it has, or those it was declared to reach."""
        return max(self.tokens, self.declared)
