"""Other traffic made of the same: a window of it, a sample, longer or shorter requests, all of it again and again."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from math import ceil
from typing import TYPE_CHECKING, Any, Protocol

from kvsim.content import Content, Layers, Run, own_stream
from kvsim.errors import InputError
from kvsim.request import PS_PER_S
from kvsim.workload.arguments import check_not_negative, check_positive, check_share, check_whole
from kvsim.workload.arrivals import CHUNK, as_written
from kvsim.workload.lengths import LONGEST
from kvsim.workload.readers.interface import Row
from kvsim.workload.streams import Streams

if TYPE_CHECKING:
    from numpy.random import Generator


class Rows(Protocol):
    """Traffic as rows, with what is known of their prompts (see `stream.Traffic`)."""

    def rows(self, streams: Streams) -> Iterator[Row]:
        """(arrival in picoseconds, prompt tokens, output tokens), arrivals never decreasing."""

    def more_outputs(self, streams: Streams) -> Iterator[int] | None:
        """True output lengths of further samples."""

    def contents(self) -> Iterator[Content] | None:
        """What the prompt of each row is."""

    def layers(self) -> Layers:
        """Which layer of sharing each stream of the contents belongs to."""

    def describe(self) -> dict[str, object]:
        """The report for the run folder."""


@dataclass(frozen=True, kw_only=True)
class Reshape:
    """What is done to the rows, in this order.

    Those that arrive from `from_s` until before `until_s` are kept, and come that much earlier; of them a `share`,
    drawn row by row, so that the rate falls by count and gaps are not stretched. Prompts and outputs become
    `prompt_times` and `output_times` as long, rounded up. All times are divided by `rate_times`: a time warp, after
    which the rate is that many times as high and bursts keep their shape. All of it comes `repeat` times, the period
    being the window or, without an end, the time from the first to the last row and a mean gap. ValueError on a number
    that cannot be.
    """

    from_s: float = 0.0
    until_s: float | None = None
    share: float = 1.0
    prompt_times: float = 1.0
    output_times: float = 1.0
    rate_times: float = 1.0
    repeat: int = 1

    def __post_init__(self) -> None:
        check_not_negative("from_s", self.from_s)
        if self.until_s is not None:
            check_positive("until_s", self.until_s)
            if self.until_s <= self.from_s:
                raise ValueError(f"until_s: must be after from_s = {self.from_s:g}; got {self.until_s!r}")
        check_share("share", self.share)
        check_positive("share", self.share)
        check_positive("prompt_times", self.prompt_times)
        check_positive("output_times", self.output_times)
        check_positive("rate_times", self.rate_times)
        check_whole("repeat", self.repeat, 1)

    @property
    def warp(self) -> tuple[int, int]:
        """By what ratio times are multiplied; exact."""
        numerator, denominator = as_written(self.rate_times).as_integer_ratio()
        return denominator, numerator

    @property
    def keeps_all(self) -> bool:
        """Everything comes as it is, but for its length."""
        return (self.from_s, self.until_s, self.share, self.repeat) == (0, None, 1, 1)

    def describe(self) -> dict[str, Any]:
        """The parameters that do something, as plain values."""
        unchanged = Reshape()
        return {name: value for name, value in vars(self).items() if value != getattr(unchanged, name)}


class Reshaped:
    """Traffic of rows, reshaped. InputError, from `rows` and `contents`, where no row is left, and where prompts that
    begin alike would be sampled row by row or made longer: then a later turn would miss the one before it.
    """

    def __init__(self, traffic: Rows, reshape: Reshape) -> None:
        self._traffic = traffic
        self._reshape = reshape

    def rows(self, streams: Streams) -> Iterator[Row]:
        """The rows that are left, in order; reads the traffic once for each repetition."""
        self._check()
        return (row for row, _ in self._kept(streams))

    def places(self, streams: Streams) -> Iterator[int]:
        """Which row of the traffic each of the rows that are left is, from 0; in the order of `rows`."""
        return (place for _, place in self._kept(streams))

    def more_outputs(self, streams: Streams) -> Iterator[int] | None:
        """As of the traffic itself, and as much longer."""
        lengths = self._traffic.more_outputs(streams)
        return None if lengths is None else map(scaled(self._reshape.output_times), lengths)

    def contents(self) -> Iterator[Content] | None:
        """What the prompts of the rows that are left are; of a repetition, the same again but for what is their own."""
        self._check()
        if self._traffic.contents() is None:
            return None
        return self._contents()

    def layers(self) -> Layers:
        """As of the traffic itself."""
        return self._traffic.layers()

    def describe(self) -> dict[str, object]:
        """The report of the traffic, and what was made of it."""
        return {**self._traffic.describe(), "reshape": self._reshape.describe()}

    def _contents(self) -> Iterator[Content]:
        numbers = count()
        places = [place for _, place in self._kept(Streams(0), once=True)]
        for _ in range(self._reshape.repeat):
            contents = self._traffic.contents()
            assert contents is not None
            wanted = iter(places)
            following = next(wanted, None)
            for place, content in enumerate(contents):
                if place == following:
                    yield _owned(content, next(numbers))
                    following = next(wanted, None)

    def _kept(self, streams: Streams, *, once: bool = False) -> Iterator[tuple[Row, int]]:
        """The rows that are left, each with its place in the traffic."""
        shape = self._reshape
        from_ps = round(as_written(shape.from_s) * PS_PER_S)
        until_ps = None if shape.until_s is None else round(as_written(shape.until_s) * PS_PER_S)
        prompts, outputs = scaled(shape.prompt_times), scaled(shape.output_times)
        start_ps = 0
        numerator, denominator = shape.warp
        half = denominator // 2
        for _ in range(1 if once else shape.repeat):
            draws = _uniform(streams.generator("sample")) if shape.share < 1 else None
            first_ps = last_ps = found = 0
            for place, (arrival_ps, prompt, output) in enumerate(self._traffic.rows(streams)):
                if until_ps is not None and arrival_ps >= until_ps:
                    break
                if arrival_ps < from_ps or (draws is not None and next(draws) >= shape.share):
                    continue
                last_ps = ((arrival_ps - from_ps) * numerator + half) // denominator
                first_ps, found = first_ps if found else last_ps, found + 1
                yield (start_ps + last_ps, prompts(prompt), outputs(output)), place
            if not found:
                raise InputError("reshape: no request is left; widen the window, or keep a larger share")
            span_ps = last_ps - first_ps
            if until_ps is None:
                start_ps += span_ps + ceil(span_ps / max(1, found - 1))
            else:
                start_ps += ((until_ps - from_ps) * numerator + half) // denominator

    def _check(self) -> None:
        shape = self._reshape
        if (shape.share < 1 or shape.prompt_times != 1) and self._traffic.contents() is not None:
            what = "share" if shape.share < 1 else "prompt_times"
            raise InputError(
                f"reshape.{what}: the trace says which prompts begin alike, which a change of single rows breaks; "
                "leave it out, or turn prefix caching off"
            )


def scaled(times: float) -> "Any":
    """A length to one so many times as long, rounded up."""
    if times == 1:
        return lambda tokens: tokens
    numerator, denominator = as_written(times).as_integer_ratio()
    return lambda tokens: min(LONGEST, -(-tokens * numerator // denominator))


def _owned(content: Content, number: int) -> Content:
    """The same prompt, with what only it has in the stream of request `number`."""
    own = own_stream(number)
    return Content(Run(own if run.stream < 0 else run.stream, run.offset, run.tokens) for run in content.runs)


def _uniform(generator: "Generator") -> Iterator[float]:
    while True:
        yield from generator.random(CHUNK).tolist()
