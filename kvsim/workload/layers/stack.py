"""Layers one behind the other: whose text a stream is, and what the prompts that have them begin with."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from kvsim.content import Content, Layers, Run, own_stream
from kvsim.workload.arrivals import CHUNK
from kvsim.workload.layers.shared import Picks, Shared
from kvsim.workload.streams import Streams

_KEPT = 4096
"""Beginnings of prompts that are kept ready."""

SESSION = "session"
"""The layer of what only one session has: its turns and the answers to them."""


@dataclass(frozen=True)
class LayerMap:
    """Stream to layer: the streams of layer k are those from `first[k]` to before `first[k + 1]`.

    A layer of one text is everybody's, one of several has its groups: these are its `levels` (see `content.LAYERS`).
    What one request wrote (a negative stream, see `content.own_stream`) is its session's.
    """

    names: tuple[str, ...] = ()
    first: tuple[int, ...] = ()
    levels: tuple[str, ...] = ()

    def of(self, stream: int) -> str:
        """The name of the layer whose text this stream is."""
        return SESSION if stream < 0 else self.names[self._place(stream)]

    def layers(self, *, in_sessions: bool) -> Layers:
        """How widely each stream is shared; outside sessions what one request wrote is its own."""
        own = SESSION if in_sessions else None
        return Layers(lambda stream: own if stream < 0 else self.levels[self._place(stream)])

    def _place(self, stream: int) -> int:
        place = bisect_right(self.first, stream) - 1
        if place < 0:
            raise KeyError(f"stream {stream} belongs to no layer of this traffic")
        return place


def layer_map(layers: Sequence[Shared]) -> LayerMap:
    """The streams of layers that stand one behind the other."""
    *first, _ = accumulate((layer.texts for layer in layers), initial=0)
    levels = tuple("system" if layer.texts == 1 else "group" for layer in layers)
    return LayerMap(tuple(layer.name for layer in layers), tuple(first), levels)


class Stack:
    """The layers of one run: their texts have lengths, and streams from 0 on."""

    def __init__(self, layers: Sequence[Shared], streams: Streams) -> None:
        self.layers = tuple(layers)
        self._streams = streams
        self._first = layer_map(layers).first
        self._lengths = {
            number: lengths
            for number, layer in enumerate(layers)
            if (lengths := layer.lengths(streams.generator(f"{_purpose(number)} tokens"))) is not None
        }
        """The tokens of each text, of the layers whose texts are not all as long."""

    def draws(self, member: int = 0, *, each: str | None = None, chunk: int = CHUNK) -> Iterator[list[Run]]:
        """The texts that one request after the other begins with, as runs; without end.

        `member` is the session or client whose draws they are; `each` keeps the layers that a session has once, or
        those that every turn has. The lists are not to be changed.
        """
        chosen = [number for number, layer in enumerate(self.layers) if each in (None, layer.each)]
        picks = [
            self.layers[number].picks(self._streams.generator(_purpose(number), member), chunk, turn=member)
            for number in chosen
        ]
        if len(chosen) == 1 and chosen[0] not in self._lengths:
            return self._of_one(chosen[0], picks[0])
        return self._of_all(chosen, picks)

    def texts(self, chosen: Sequence[int]) -> list[Run]:
        """The texts of these numbers, one of each of the first layers."""
        return [run for number, text in enumerate(chosen) for run in self._runs(number, (text,))]

    def _of_one(self, number: int, picks: Iterator[Picks]) -> Iterator[list[Run]]:
        """What the only layer gives, its texts all as long: by far the commonest case."""
        runs: dict[Picks, list[Run]] = {}
        for one in picks:
            found = runs.get(one)
            if found is None:
                found = self._runs(number, one)
                if len(runs) < _KEPT:
                    runs[one] = found
            yield found

    def _of_all(self, chosen: list[int], picks: list[Iterator[Picks]]) -> Iterator[list[Run]]:
        while True:
            yield [run for number, one in zip(chosen, picks, strict=True) for run in self._runs(number, next(one))]

    def _runs(self, number: int, picks: Picks) -> list[Run]:
        first, lengths = self._first[number], self._lengths.get(number)
        if lengths is None:
            tokens = self.layers[number].tokens
            assert isinstance(tokens, int)
            return [Run(first + pick, 0, tokens) for pick in picks]
        return [Run(first + pick, 0, lengths[pick]) for pick in picks]


def prompt(runs: list[Run], request: int, drawn_tokens: int) -> Content:
    """A prompt of `drawn_tokens` tokens that begins with `runs` and goes on like no other.

    One that is too short for them and a token more is made that long.
    """
    content = Content(runs)
    shared = content.tokens
    content.append(Run(own_stream(request), shared, max(drawn_tokens - shared, 1)))
    return content


def _purpose(number: int) -> str:
    return f"prefix {number}" if number else "prefix"
