"""Which blocks hold the same tokens: each full block is told by a number, together with everything before it.

vLLM hashes (hash of the block before, tokens of this one); here the pair is looked up in a dictionary and numbered, so
that two blocks have one number exactly when all tokens from the start of the sequence to the end of the block agree.
A block is one lookup whatever its size; a prompt of any length in one run is never spelled out in tokens.
"""

from kvsim.content import Content, Run

_START = 0
"""What comes before the first block."""


class Identities:
    """The numbers of all block contents that one pool has seen, from 1 on in the order of their first look-up."""

    __slots__ = ("_numbers",)

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, tuple[Run, ...]], int] = {}

    def number(self, before: int, runs: tuple[Run, ...]) -> int:
        """The number of the block that holds `runs` after the block numbered `before` (0: at the start)."""
        return self._numbers.setdefault((before, runs), len(self._numbers) + 1)


class Chain:
    """The numbers of a sequence's full blocks, in order; worked out as far as somebody asks."""

    __slots__ = ("_block_size", "_identities", "_numbers", "content")

    def __init__(self, content: Content, *, block_size: int, identities: Identities) -> None:
        self.content = content
        self._block_size = block_size
        self._identities = identities
        self._numbers: list[int] = []

    def __getitem__(self, index: int) -> int:
        """The number of block `index`, all of whose tokens are known. O(1), after O(index) once."""
        numbers, size = self._numbers, self._block_size
        for block in range(len(numbers), index + 1):
            runs = self.content.part(block * size, (block + 1) * size)
            numbers.append(self._identities.number(numbers[-1] if block else _START, runs))
        return numbers[index]

    def span(self, first: int, end: int) -> list[int]:
        """The numbers of blocks `first` to `end` - 1. O(end), the first time."""
        if end > first:
            self[end - 1]  # so that all before it are worked out
        return self._numbers[first:end]
