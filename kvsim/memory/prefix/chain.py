"""Which blocks hold the same tokens: each full block is told by a number, together with everything before it.

vLLM hashes (hash of the block before, tokens of this one); here the pair is looked up in a dictionary and numbered, so
that two blocks have one number exactly when all tokens from the start of the sequence to the end of the block agree.
A block is one lookup whatever its size; a prompt of any length in one run is never spelled out in tokens.
"""

from collections.abc import Iterable

from kvsim.content import Content, Run

_START = 0
"""What comes before the first block."""

Numbers = dict[tuple[int, tuple[Run, ...]], int]
"""By (number of the block before, tokens of this one)."""


class Identities:
    """The numbers of the block contents that one pool has seen, from 1 on in the order of their first look-up.

    Those that begin alike up to the first token of an own stream (`content.own_stream`) are kept together, so that they
    can be forgotten when nobody comes with it any more.
    """

    __slots__ = ("_heads", "_last", "_latest", "_own", "_shared")

    def __init__(self) -> None:
        self._shared: Numbers = {}
        self._own: dict[int, Numbers] = {}
        """By the first own stream of those who have them."""
        self._latest: dict[int, Chain] = {}
        """By first own stream, the chain that was begun last: the next turn of a session goes on from there."""
        self._heads: dict[Run, Chain] = {}
        """By first run, the chain that was begun last: most others that begin so go on with the same shared texts."""
        self._last = 0

    def number(self, before: int, runs: tuple[Run, ...], stream: int | None = None) -> int:
        """The number of the block that holds `runs` after the block numbered `before` (0: at the start).

        `stream` is the first own stream in it or before it, if there is one.
        """
        numbers = self._shared if stream is None else self._own.setdefault(stream, {})
        found = numbers.get((before, runs))
        if found is None:
            self._last += 1
            found = numbers[before, runs] = self._last
        return found

    def begun(self, chain: "Chain", stream: int | None) -> list[int]:
        """The first numbers of a chain that begins now, as far as an earlier one of its kind has worked them out.

        They are what `number` would give. O(runs + numbers). Mutates.
        """
        runs = chain.content.runs
        if not runs:
            return []
        before = None
        if stream is not None:
            before, self._latest[stream] = self._latest.get(stream), chain
        if before is None:
            before = self._heads.get(runs[0])
        if runs[0].stream >= 0:
            self._heads[runs[0]] = chain
        return [] if before is None else before.shared_with(chain.content)

    def forget(self, streams: Iterable[int]) -> list[int]:
        """Nobody will come with these own streams any more: the numbers that only they had, not given again."""
        gone: list[int] = []
        for stream in streams:
            self._latest.pop(stream, None)
            gone += self._own.pop(stream, {}).values()
        return gone


class Chain:
    """The numbers of a sequence's full blocks, in order; worked out as far as somebody asks."""

    __slots__ = ("_block_size", "_identities", "_numbers", "_own_from", "_stream", "content")

    def __init__(self, content: Content, *, block_size: int, identities: Identities) -> None:
        self.content = content
        self._block_size = block_size
        self._identities = identities
        tokens, self._stream = content.first_own()
        self._own_from = tokens // block_size
        """The first block that has tokens of an own stream in it or before it."""
        self._numbers = identities.begun(self, self._stream)

    def __getitem__(self, index: int) -> int:
        """The number of block `index`, all of whose tokens are known. O(1), after O(index) once."""
        numbers, size = self._numbers, self._block_size
        if index < len(numbers):
            return numbers[index]
        for block in range(len(numbers), index + 1):
            runs = self.content.part(block * size, (block + 1) * size)
            before = numbers[-1] if block else _START
            stream = None if block < self._own_from else self._stream
            numbers.append(self._identities.number(before, runs, stream))
        return numbers[index]

    def shared_with(self, content: Content) -> list[int]:
        """The numbers of the first blocks that `content` has as well, as far as they are worked out. Pure."""
        return self._numbers[: self.content.common(content) // self._block_size]

    def span(self, first: int, end: int) -> list[int]:
        """The numbers of blocks `first` to `end` - 1. O(end), the first time."""
        if end > first:
            self[end - 1]  # so that all before it are worked out
        return self._numbers[first:end]
