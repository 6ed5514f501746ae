"""Where a session's numbers come from: a stream of its own, or blocks of many sessions drawn at once.

Either way a number depends on its purpose, on whose it is, and on how many of that purpose came before it there; not
on how long other sessions are, and not on when it is asked for.
"""

from collections.abc import Callable, Iterator
from itertools import chain, count, repeat
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from kvsim.workload.clients.limits import Patience
from kvsim.workload.clients.tags import TagMix
from kvsim.workload.lengths import Constant, LengthDistribution
from kvsim.workload.streams import Streams

if TYPE_CHECKING:
    from numpy.random import Generator

T = TypeVar("T")

Endless = Callable[["Generator", int], Iterator[Any]]
"""Values without end from a generator, so many drawn at a time."""

_MEMBERS = 32
_PLACES = 8
"""A block has the first, second, ... so many values of so many sessions: making a generator costs as much as drawing
some hundred numbers, and most sessions are short.
"""

_OWN_CHUNK = 64
"""Values drawn at a time for a client, which goes on from one session to the next."""


class Source(Protocol):
    """Gives one member's values of a purpose."""

    def values(self, endless: Endless, purpose: str) -> Iterator[Any]:
        """The values of `purpose`, without end; made when the first one is asked for."""


class OwnStream:
    """A member that draws on and on: one stream for each purpose."""

    def __init__(self, streams: Streams, member: int) -> None:
        self._streams = streams
        self._member = member

    def values(self, endless: Endless, purpose: str) -> Iterator[Any]:
        """See `Source`."""
        return lazily(lambda: endless(self._streams.generator(purpose, self._member), _OWN_CHUNK))


class Blocks:
    """Members that are drawn one after the other, in the order of their numbers."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._now = -1
        self._drawn: dict[tuple[str, int], list[Any]] = {}
        """What has been drawn for the members next to each other that it is at, by purpose and place."""

    def of(self, member: int) -> "_InBlocks":
        """The values of one member."""
        return _InBlocks(self, member)

    def rows(self, endless: Endless, purpose: str, member: int) -> Iterator[Any]:
        """The values of `purpose` that are one member's, without end."""
        block, row = divmod(member, _MEMBERS)
        for place in count():
            if block != self._now:
                self._now = block
                self._drawn.clear()
            values = self._drawn.get((purpose, place))
            if values is None:
                generator = self._streams.generator(purpose, block, place)
                size = _MEMBERS * _PLACES
                values = [value for value, _ in zip(endless(generator, size), range(size), strict=False)]
                self._drawn[purpose, place] = values
            yield from values[row * _PLACES : (row + 1) * _PLACES]


class _InBlocks:
    def __init__(self, blocks: Blocks, member: int) -> None:
        self._blocks = blocks
        self._member = member

    def values(self, endless: Endless, purpose: str) -> Iterator[Any]:
        """See `Source`."""
        return self._blocks.rows(endless, purpose, self._member)


def lengths(source: Source, law: LengthDistribution, purpose: str) -> Iterator[int]:
    """Lengths of a law; of a constant one without the cost of a generator."""
    if isinstance(law, Constant):
        return repeat(min(max(law.value, law.min), law.max))
    return source.values(law.lengths, purpose)


def uniform(source: Source, purpose: str) -> Iterator[float]:
    """Numbers from 0 to 1."""
    return source.values(_uniform, purpose)


def patiences(source: Source, cancel: Patience | None) -> Iterator[int | None]:
    """How long clients wait for each turn, in picoseconds; None: as long as it takes."""
    return repeat(None) if cancel is None else source.values(cancel.patiences_ps, "cancel")


def kinds(source: Source, mix: TagMix | None) -> Iterator[int]:
    """Which kind of client each session is from."""
    return repeat(0) if mix is None else source.values(mix.draws, "tags")


def lazily(make: Callable[[], Iterator[T]]) -> Iterator[T]:
    """An iterator that is made when its first value is asked for."""
    return chain.from_iterable(make() for _ in (0,))


def _uniform(generator: "Generator", chunk: int) -> Iterator[float]:
    while True:
        yield from generator.random(chunk).tolist()


__all__ = ["Blocks", "OwnStream", "Source", "kinds", "lazily", "lengths", "patiences", "uniform"]
