"""Hit rates of one trace over sizes: LRU at all of them in one pass, every other policy at each that is asked for.

The cache is one, requests come in file order, one at a time and at once, and only prompts are cached. So the rates are
what sharing offers, not what an engine reaches whose running requests hold blocks of their own.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from kvsim.errors import InputError
from kvsim.memory.eviction import POLICIES
from kvsim.memory.eviction.interface import Blocks
from kvsim.memory.eviction.stack_distance import needed_blocks
from kvsim.workload.trace.prefixes import Prefixes

Progress = Callable[[float, str], None]
"""Called with the fraction done, 0 to 1, and what is being done."""

DOUBLINGS = 10
"""Sizes below the whole that are tried unless somebody says which."""


@dataclass(frozen=True)
class Rate:
    """Found of what was asked: blocks of all blocks, and tokens of all prompt tokens."""

    blocks: float
    tokens: float


class Asked:
    """What the prompts ask for, and what finding some of it is worth."""

    def __init__(self, prefixes: Prefixes, *, full_blocks: bool) -> None:
        self.block_tokens = prefixes.block_tokens
        self.tokens = prefixes.tokens
        self.prompts: Sequence[Blocks] = prefixes.full() if full_blocks else prefixes.blocks
        self.all_blocks = sum(map(len, self.prompts))
        self.all_tokens = sum(self.tokens)

    def rate(self, found: Sequence[int]) -> Rate:
        """The rate where so many blocks at the head of each prompt were found."""
        return self.share(sum(found), sum(map(self.tokens_in, found, self.tokens)))

    def share(self, blocks: int, tokens: int) -> Rate:
        """So many of all."""
        return Rate(blocks / self.all_blocks, tokens / self.all_tokens)

    def tokens_in(self, blocks: int, tokens: int) -> int:
        """Tokens in the first blocks of a prompt of so many tokens: its last block may be partly filled."""
        return min(blocks * self.block_tokens, tokens)


class LruCurve:
    """LRU at every size."""

    def __init__(self, asked: Asked, *, head_first: bool = False) -> None:
        blocks, tokens = Counter[int](), Counter[int]()
        for needed, prompt in zip(needed_blocks(asked.prompts, head_first=head_first), asked.tokens, strict=True):
            for before, size in enumerate(needed):
                blocks[size] += 1
                tokens[size] += asked.tokens_in(before + 1, prompt) - asked.tokens_in(before, prompt)
        self._asked = asked
        self.sizes = sorted(blocks)
        """Where the curve rises."""
        self._blocks = array("q", accumulate((blocks[size] for size in self.sizes), initial=0))
        self._tokens = array("q", accumulate((tokens[size] for size in self.sizes), initial=0))

    def rate(self, capacity_blocks: int) -> Rate:
        """At one size."""
        at = bisect_right(self.sizes, capacity_blocks)
        return self._asked.share(self._blocks[at], self._tokens[at])

    @property
    def ideal(self) -> Rate:
        """Where everything fits: the first use of a block alone is no hit."""
        return self._asked.share(self._blocks[-1], self._tokens[-1])

    def smallest(self, share: float) -> int | None:
        """The smallest size in blocks that finds this share of the blocks that the ideal finds; None if that is none.

        `share` is above 0 and at most 1.
        """
        if not self.sizes:
            return None
        return self.sizes[bisect_left(self._blocks, share * self._blocks[-1]) - 1]


@dataclass(frozen=True)
class HitCurve:
    """Hit rates of `prefixes` at `sizes_blocks`, by policy in the order asked for; LRU (tail first) at every size."""

    prefixes: Prefixes
    full_blocks: bool
    lru: LruCurve
    ideal_full_blocks: Rate | None
    """As `lru.ideal`, with full blocks alone; None where no prompt fills one."""
    sizes_blocks: list[int]
    rates: dict[str, list[Rate]]


def hit_curve(
    prefixes: Prefixes,
    *,
    policies: Sequence[str],
    sizes_blocks: Sequence[int] | None = None,
    full_blocks: bool = False,
    progress: Progress | None = None,
) -> HitCurve:
    """Serve the trace once for LRU, and once more for each other policy and size.

    `policies` are names in `memory.eviction.POLICIES`; `sizes_blocks` by default double up to the whole. `full_blocks`
    leaves out the partly filled last blocks, which engines do not share. InputError where nothing is left to ask for.
    """
    asked = Asked(prefixes, full_blocks=full_blocks)
    if not asked.all_blocks:
        raise InputError(
            f"{prefixes.trace}: no prompt has a block of {prefixes.block_tokens} tokens to share; give a trace with "
            "longer prompts or smaller blocks"
        )
    sizes = sorted(set(default_sizes(prefixes.distinct_blocks) if sizes_blocks is None else sizes_blocks))
    curves = {"lru": LruCurve(asked)}
    if "lru-head-first" in policies:
        curves["lru-head-first"] = LruCurve(asked, head_first=True)
    rates: dict[str, list[Rate]] = {}
    for number, policy in enumerate(policies):
        rates[policy] = []
        for at, size in enumerate(sizes):
            if progress is not None:
                progress((number + at / len(sizes)) / len(policies), f"{policy}, {size:,} blocks")
            if policy in curves:
                rates[policy].append(curves[policy].rate(size))
            else:
                rates[policy].append(asked.rate(list(map(POLICIES[policy](size, asked.prompts).serve, asked.prompts))))
    return HitCurve(
        prefixes=prefixes,
        full_blocks=full_blocks,
        lru=curves["lru"],
        ideal_full_blocks=curves["lru"].ideal if full_blocks else _ideal_full_blocks(prefixes),
        sizes_blocks=sizes,
        rates=rates,
    )


def default_sizes(distinct_blocks: int) -> list[int]:
    """Powers of two, the last ten below the whole, and the whole."""
    powers = [2**power for power in range(distinct_blocks.bit_length()) if 2**power < distinct_blocks]
    return [*powers[-DOUBLINGS:], distinct_blocks]


def _ideal_full_blocks(prefixes: Prefixes) -> Rate | None:
    asked = Asked(prefixes, full_blocks=True)
    seen: set[int] = set()
    found = []
    for blocks in asked.prompts:
        found.append(next((at for at, block in enumerate(blocks) if block not in seen), len(blocks)))
        seen.update(blocks)
    return asked.rate(found) if asked.all_blocks else None
