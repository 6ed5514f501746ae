"""Where the slots of a small pool are in each phase of a request: asked of the allocators that `kvsim run` uses."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from kvsim.content import ENDLESS, Content, Run, own_stream
from kvsim.errors import InputError
from kvsim.memory.interface import Allocator
from kvsim.request import Sequence
from kvsim.step import Ask, Chunk, Grant

Phase = Literal["before", "allocate", "prefill", "decode", "release"]

PROMPT_STREAM = 0
"""The prompt that every request of the example has."""


@dataclass(frozen=True)
class Moment:
    """The pool after a phase, in slots; the classes add up to it. `written` tokens are the request's own KV so far."""

    phase: Phase
    request: int
    written: int
    used: int
    reserved: int
    internal: int
    cached: int
    free: int


@dataclass(frozen=True)
class Life:
    """One request from arrival to release: how much of its prompt it found cached, and the pool after each phase."""

    request: int
    prompt_tokens: int
    hit_tokens: int
    moments: tuple[Moment, ...]

    def after(self, phase: Phase) -> list[Moment]:
        """The pool after each time that this phase was done."""
        return [moment for moment in self.moments if moment.phase == phase]


def live(allocator: Allocator, request: int, prompt_tokens: int, output_tokens: int) -> Life:
    """Take one request through an allocator that nobody else uses, and give its room back. Mutates the allocator.

    Prefill samples the first output token, each decode step the next one; the last one sampled is never computed.
    InputError where the pool is too small.
    """
    content = Content([Run(PROMPT_STREAM, 0, prompt_tokens), Run(own_stream(request), 0, ENDLESS)])
    sequence = Sequence(request, prompt_tokens, output_tokens, tokens=prompt_tokens, content=content, admission=request)
    moments = list(_moments(allocator, sequence, prompt_tokens + output_tokens - 1))
    # The second one is the first with its room; what is written by then was there already.
    return Life(request, prompt_tokens, moments[1].written, tuple(moments))


def _moments(allocator: Allocator, sequence: Sequence, last: int) -> Iterator[Moment]:
    """The pool before it comes and after each phase; `last` tokens of it are written in all."""
    prompt_tokens = sequence.prompt_tokens

    def moment(phase: Phase) -> Moment:
        use, written = allocator.usage(), allocator.decodes.written_of(sequence)
        owned = allocator.owned(sequence)
        # What it owns and has not written is still to be written, or never will be.
        reserved = min(owned, last) - min(owned, written)
        return Moment(
            phase,
            sequence.id,
            written if owned else 0,
            use.used,
            reserved,
            use.unwritten - reserved,
            use.cached,
            use.free,
        )

    yield moment("before")
    _granted(allocator.acquire([Ask(sequence, prompt_tokens, admit=True, alone=True)]))
    yield moment("allocate")
    allocator.settle([Chunk(sequence, prompt_tokens - sequence.written, sequence.written)], stalled=True)
    sequence.tokens = prompt_tokens + 1
    allocator.begin_decode(sequence)
    yield moment("prefill")
    for _ in range(last - prompt_tokens):
        _granted(allocator.acquire([], decodes=True))
        allocator.settle([])
        yield moment("decode")
    allocator.release(sequence)
    yield moment("release")


def _granted(answer: object) -> None:
    if not isinstance(answer, Grant):
        raise InputError(f"the pool of the example is too small: {answer}; give it more blocks")


def lives(allocator: Allocator, prompt_tokens: int, output_tokens: int, requests: int) -> list[Life]:
    """The same request so many times, one after the other."""
    return [live(allocator, number, prompt_tokens, output_tokens) for number in range(requests)]
