"""What tokens are, without holding them: content as runs of a stream.

A stream is an endless sequence of tokens, each unlike any other of its own or of another stream (a system prompt, a
document, one conversation, the output of one request). Two requests share a prefix exactly as far as their runs agree.
So a prompt of 100,000 tokens is a handful of runs.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

ENDLESS = 1 << 62
"""More tokens than any sequence has."""


def own_stream(sequence_id: int) -> int:
    """The stream of the tokens that only this sequence has: negative, so that those of shared content are 0 and up."""
    return -1 - 2 * sequence_id if sequence_id >= 0 else 2 * sequence_id


class Run(NamedTuple):
    """`tokens` tokens of `stream` from its token number `offset` on."""

    stream: int
    offset: int
    tokens: int


class Content:
    """A sequence of tokens as runs; adjoining runs of one stream are one run. Equal content has equal runs."""

    __slots__ = ("_ends", "runs", "tokens")

    def __init__(self, runs: Iterable[Run] = ()) -> None:
        self.runs: list[Run] = []
        self._ends: list[int] = []
        """Tokens up to the end of each run."""
        self.tokens = 0
        for run in runs:
            self.append(run)

    def append(self, run: Run) -> None:
        """Go on with `run`; one of no tokens changes nothing. Mutates."""
        if run.tokens < 1:
            return
        self.tokens += run.tokens
        if self.runs:
            last = self.runs[-1]
            if last.stream == run.stream and last.offset + last.tokens == run.offset:
                self.runs[-1] = Run(last.stream, last.offset, last.tokens + run.tokens)
                self._ends[-1] = self.tokens
                return
        self.runs.append(run)
        self._ends.append(self.tokens)

    def part(self, start: int, end: int) -> tuple[Run, ...]:
        """The runs of tokens `start` to `end` - 1, cut at both ends. O(log runs + runs within)."""
        found = []
        index = bisect_right(self._ends, start)
        while start < end:
            run = self.runs[index]
            skipped = start - (self._ends[index] - run.tokens)
            taken = min(end - start, run.tokens - skipped)
            found.append(Run(run.stream, run.offset + skipped, taken))
            start += taken
            index += 1
        return tuple(found)

    def first_own(self) -> tuple[int, int | None]:
        """Tokens before the first one of an own stream (all, if there is none), and that stream. O(runs)."""
        before = 0
        for run in self.runs:
            if run.stream < 0:
                return before, run.stream
            before += run.tokens
        return before, None

    def common(self, other: "Content") -> int:
        """Tokens at the start in which both agree."""
        return common_tokens(self.runs, other.runs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Content) and self.runs == other.runs

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Content({self.runs!r})"


def common_tokens(ours: Iterable[Run], theirs: Iterable[Run]) -> int:
    """Tokens at the start of two sequences of runs in which they agree (both with adjoining runs joined)."""
    agreed = 0
    for one, other in zip(ours, theirs, strict=False):
        if (one.stream, one.offset) != (other.stream, other.offset):
            break
        agreed += min(one.tokens, other.tokens)
        if one.tokens != other.tokens:
            break
    return agreed


LAYERS = ("system", "group", "session", "own", "unknown")
"""Layers of sharing, widest first: what all requests have; what some have (an application, a document); the turns of
one conversation; what came up with one request alone (its output as a later turn finds it, its prompt as another sample
of it does, everything of it after a preemption); and shared content whose layer nobody told."""


def _untold(stream: int) -> None:
    """Nothing is known of any stream."""


class Spans(NamedTuple):
    """The layers within one stream: from each of `starts` on (0 first, rising) the name of the same place."""

    starts: Sequence[int]
    names: Sequence[str | None]

    def parts(self, offset: int, tokens: int) -> Iterator[tuple[str | None, int]]:
        """So many tokens from `offset` on, as (layer, tokens) one behind the other. O(log spans + parts)."""
        place = bisect_right(self.starts, offset) - 1
        while tokens:
            last = place + 1 == len(self.starts)
            taken = tokens if last else min(tokens, self.starts[place + 1] - offset)
            yield self.names[place], taken
            offset, tokens, place = offset + taken, tokens - taken, place + 1


@dataclass(frozen=True)
class Layers:
    """Which layer of sharing tokens belong to, as far as the workload knows.

    `of` names the layer of a stream, one of `LAYERS`; None: not known, and then a stream of its own is `own` and any
    other `unknown`. `spans` names the layers within streams that are of several. `heads`: so many tokens at the start
    of a stream are `system`, whatever comes behind them.
    """

    of: Callable[[int], str | None] = _untold
    heads: Mapping[int, int] = field(default_factory=dict)
    spans: Mapping[int, Spans] = field(default_factory=dict)

    def split(self, runs: Iterable[Run], tokens: int) -> tuple[int, ...]:
        """How many of the first `tokens` tokens of `runs` are of each of `LAYERS`; they add up. O(runs and spans).

        ValueError for a layer of another name.
        """
        found = dict.fromkeys(LAYERS, 0)
        for run in runs:
            if not tokens:
                break
            taken = min(tokens, run.tokens)
            tokens -= taken
            head = min(taken, max(0, self.heads.get(run.stream, 0) - run.offset))
            found["system"] += head
            if taken == head:
                continue
            spans = self.spans.get(run.stream) or Spans((0,), (self.of(run.stream),))
            for name, part in spans.parts(run.offset + head, taken - head):
                layer = name or ("own" if run.stream < 0 else "unknown")
                if layer not in found:
                    raise ValueError(f"stream {run.stream} is of layer {layer!r}; there are {', '.join(LAYERS)}")
                found[layer] += part
        return tuple(found.values())
