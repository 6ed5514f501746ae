"""The range of batches and shapes that a calibration was fitted to, and how far a run leaves it.

Outside of it a family's formula is extrapolated. What changes from step to step is watched as the run goes on, by
batch and not by token: sequences, mean context, tokens of a step, tokens of a prompt's chunk and tokens cached before
it. What the model's shape decides is the same in every step.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isinf
from typing import NamedTuple

QUANTITIES = {
    "sequences": "sequences at once",
    "context": "context tokens a sequence",
    "tokens": "tokens in a step",
    "chunk": "new tokens of a prompt",
    "cached": "cached tokens before a prompt's chunk",
}
"""What a run may leave the range in, step by step, in words."""


_KERNELS = {"linear": "linear layers"}
"""What people call a family of kernels, where that is not its name."""

HERE = "; here "
"""Between what was fitted, which many runs may leave, and what one of them has."""

_WHEN = ((0.05, "seldom"), (0.5, "part of the time"), (0.95, "most of the time"), (1.0, "nearly all the time"))
"""The part of the time up to which each word is said."""


def kernel_text(family: str) -> str:
    """A family of kernels in words: `linear layers in bf16`, `prefill attention by head`."""
    name, _, kind = family.partition(":")
    kind = kind.replace("_", " ")
    how = f" {kind}" if kind.startswith("by ") else f" in {kind}" if kind else ""
    return f"{_KERNELS.get(name, name.replace('_', ' '))}{how}"


class Span(NamedTuple):
    """From `low` to `high`, both inside, as `family` was fitted."""

    family: str
    low: float
    high: float

    def beyond(self, value: float) -> float:
        """How many times as far as the nearer end; 1 for what lies inside, infinite beyond an end at 0."""
        if value > self.high:
            return value / self.high if self.high else inf
        return self.low / value if value < self.low else 1.0


class Outside(NamedTuple):
    """One quantity that was left: furthest `value`, and the part of the time (None: the model's shape, all of it)."""

    span: Span
    what: str
    value: float
    share: float | None

    def __str__(self) -> str:
        """In words: what was fitted, `HERE`, and what there is, as coarsely as that several runs alike say the same."""
        low, high = (f"{end:,.0f}" for end in self.span[1:])
        seen = f"{low} to {high}" if low != high else f"{low} alone"
        far = self.span.beyond(self.value)
        times = "" if isinf(far) else f", {far:,.2g} times as far"
        if self.share is None:
            there = f"{self.value:,.0f} in every step"
        else:
            way = "up to" if self.value > self.span.high else "down to"
            when = next(word for most, word in _WHEN if self.share <= most)
            there = f"{way} {float(f'{self.value:.1e}'):,.0f} {when}"
        return f"{kernel_text(self.span.family)}, fitted to {self.what} of {seen}{HERE}{there}{times}"


@dataclass(frozen=True)
class FittedRange:
    """`spans` by name in `QUANTITIES`, the narrowest of the families of a step; `shapes` that lie outside."""

    spans: Mapping[str, Span]
    shapes: Sequence[Outside] = ()


def narrowest(spans: Iterable[Span]) -> Span | None:
    """Where all of them hold, named after the one that ends first; None of none."""
    known = list(spans)
    if not known:
        return None
    low, high = max(known, key=lambda span: span.low).low, min(known, key=lambda span: span.high)
    return Span(high.family, low, high.high)


def furthest(values: Iterable[tuple[Span, str, float]]) -> Iterator[Outside]:
    """Of each family and quantity the value that lies furthest outside its span, where any does."""
    worst: dict[tuple[str, str], Outside] = {}
    for span, what, value in values:
        known = worst.get((span.family, what))
        beyond = span.beyond(value)
        if beyond > 1 and (known is None or beyond > span.beyond(known.value)):
            worst[span.family, what] = Outside(span, what, value, None)
    yield from worst.values()


class Watch:
    """Time spent outside a range, in picoseconds; a leap is counted as the steps that it is."""

    def __init__(self, fitted: FittedRange) -> None:
        self._fitted = fitted
        self._total_ps = 0
        self._outside_ps = dict.fromkeys(fitted.spans, 0)
        self._value: dict[str, float] = {}

    def step(self, duration_ps: int, rows: int, context: int, chunks: Sequence[tuple[int, int]]) -> None:
        """One step: decoding `rows` over `context` tokens together, and chunks of (tokens, tokens before)."""
        self._total_ps += duration_ps
        tokens = rows
        if rows:
            self._see("sequences", rows, duration_ps)
            self._see("context", context / rows, duration_ps)
        for length, _ in chunks:
            tokens += length
        if tokens:
            # A step can compute nothing: whom it was for has just gone.
            self._see("tokens", tokens, duration_ps)
        if chunks:
            self._see("chunk", max(length for length, _ in chunks), duration_ps)
            self._see("cached", max(written for _, written in chunks), duration_ps)

    def leap(self, until_ps: Callable[[int], int], rows: int, context: int, steps: int) -> None:
        """`steps` decode steps of `rows` rows, whose context grows by a token each step from `context` in all.

        `until_ps` is the time of the first so many of them.
        """
        whole_ps = until_ps(steps)
        self._total_ps += whole_ps
        self._see("sequences", rows, whole_ps)
        self._see("tokens", rows, whole_ps)
        span = self._fitted.spans.get("context")
        if span is None:
            return
        short = -((context - int(span.low) * rows) // rows)
        inside = (int(span.high) * rows - context) // rows + 1
        below, upto = min(steps, max(0, short)), min(steps, max(0, inside))
        if below:
            self._note("context", context / rows, until_ps(below))
        if upto < steps:
            self._note("context", context / rows + steps - 1, whole_ps - until_ps(upto))

    def outside(self) -> list[Outside]:
        """Everything that was left: shapes first, then what took the most time."""
        total_ps = self._total_ps or 1
        seen = [
            Outside(self._fitted.spans[name], QUANTITIES[name], self._value[name], self._outside_ps[name] / total_ps)
            for name in self._value
        ]
        return [*self._fitted.shapes, *sorted(seen, key=lambda one: -(one.share or 0))]

    def _see(self, name: str, value: float, duration_ps: int) -> None:
        span = self._fitted.spans.get(name)
        if span is not None and not span.low <= value <= span.high:
            self._note(name, value, duration_ps)

    def _note(self, name: str, value: float, duration_ps: int) -> None:
        span = self._fitted.spans[name]
        self._outside_ps[name] += duration_ps
        if span.beyond(value) > span.beyond(self._value.get(name, span.high)):
            self._value[name] = value
