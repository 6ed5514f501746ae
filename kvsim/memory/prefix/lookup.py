"""What of a sequence is cached for all groups of layers at once. Rules 3 and 25 of vLLM's manager."""

from collections.abc import Sequence
from typing import NamedTuple

from kvsim.memory.prefix.chain import Chain
from kvsim.memory.prefix.full import FullGroup
from kvsim.memory.prefix.group import Group
from kvsim.memory.prefix.pool import NULL, BlockPool


class Hit(NamedTuple):
    """A prefix that need not be computed."""

    tokens: int
    tables: tuple[list[int], ...]
    """For each group its blocks, null ones behind its window; all lists empty where nothing is hit."""
    junction_tokens: int
    """Where a longer prefix, cached for some groups only, ends: it is shared, and worth keeping; 0: none."""


class Lookup:
    """Hits of a pool shared by `groups`; each group's blocks are its own."""

    def __init__(self, pool: BlockPool, groups: Sequence[Group], block_size: int) -> None:
        self._pool = pool
        self._block_size = block_size
        self._groups = len(groups)
        together: dict[Group, list[int]] = {}
        for number, group in enumerate(groups):
            together.setdefault(group, []).append(number)
        # Full attention first: its hit bounds the others'.
        self._kinds = sorted(together.items(), key=lambda kind: not isinstance(kind[0], FullGroup))
        kinds = len(self._kinds)
        self._once = kinds == 1 or (kinds == 2 and isinstance(self._kinds[0][0], FullGroup))
        """One kind alone, or one behind full attention, has nothing to say to a shorter prefix than its own hit."""

    def hit(self, chain: Chain, most_tokens: int) -> Hit:
        """The longest prefix of at most `most_tokens` that every group has. Pure.

        Each kind of group in turn shortens what the others agreed on, until all agree.
        """
        size = self._block_size
        tables: list[list[int]] = [[] for _ in range(self._groups)]
        agreed, longest, first_pass = most_tokens, 0, True
        while True:
            length = agreed
            for group, numbers in self._kinds:
                if isinstance(group, FullGroup) and not first_pass:
                    length = min(length, len(tables[numbers[0]]) * size)
                    continue
                blocks = group.hit(chain, length // size, _Finder(self._pool, numbers), (NULL,) * len(numbers))
                length = len(blocks) * size
                for place, number in enumerate(numbers):
                    tables[number] = [row[place] for row in blocks]
                longest = max(longest, length)
            if length >= agreed or self._once:
                break
            agreed, first_pass = length, False
        for table in tables:
            del table[length // size :]
        return Hit(length, tuple(tables), longest if longest > length else 0)


class _Finder:
    """Finds a content for several groups at once."""

    __slots__ = ("_numbers", "_pool")

    def __init__(self, pool: BlockPool, numbers: list[int]) -> None:
        self._pool = pool
        self._numbers = numbers

    def __call__(self, content: int) -> tuple[int, ...] | None:
        if len(self._numbers) == 1:
            only = self._pool.find((self._numbers[0], content))
            return None if only is None else (only,)
        found = []
        for number in self._numbers:
            block = self._pool.find((number, content))
            if block is None:
                return None
            found.append(block)
        return tuple(found)
