"""LRU at every size in one pass: how large the cache must be for each block to be found (Mattson et al., Evaluation
techniques for storage hierarchies, IBM Systems Journal 9(2), 1970).

An LRU cache of C blocks holds the C blocks that were touched last, whatever C is. So a block is found by every cache
that is larger than the number of other blocks touched since, and by no smaller one.
"""

from collections.abc import Iterator, Sequence

from kvsim.memory.eviction.interface import Blocks


def needed_blocks(prompts: Sequence[Blocks], *, head_first: bool = False) -> Iterator[list[int]]:
    """For each prompt the sizes in blocks that an LRU cache needs for its leading blocks, up to the first new one.

    A cache of `capacity` blocks finds as many blocks of the prompt as its list has numbers of at most `capacity`; the
    lists never decrease, since what stands behind a missing block is no hit. Blocks are touched tail first unless
    `head_first`. O(log touches) a block that was seen before.
    """
    touches = sum(map(len, prompts))
    outdated = [0] * (touches + 1)
    """A Fenwick tree over touches, which are numbered from 1: those after which their block was touched again."""
    outdated_touches = 0
    last_touch: dict[int, int] = {}
    now = 0
    for blocks in prompts:
        needed: list[int] = []
        most = 0
        for block in blocks:
            touch = last_touch.get(block)
            if touch is None:
                break
            outdated_upto = 0
            at = touch
            while at:
                outdated_upto += outdated[at]
                at &= at - 1
            most = max(most, 1 + (now - touch) - (outdated_touches - outdated_upto))
            needed.append(most)
        for block in blocks if head_first else reversed(blocks):
            now += 1
            before = last_touch.get(block)
            last_touch[block] = now
            if before is not None:
                outdated_touches += 1
                while before <= touches:
                    outdated[before] += 1
                    before += before & -before
        yield needed
