"""`contiguous`: the naive way, one region per request that grows with it."""

from kvsim.memory.addresses import power_of_two
from kvsim.memory.regions import RegionAllocator

GROWTHS = ("chunk", "double", "exact", "cat")
"""By how much a region grows."""

COMPACTIONS = ("never", "on-failure")
"""When regions slide together."""


class ContiguousAllocator(RegionAllocator):
    """A region that holds the whole prompt from admission on and grows, in place where the room behind it is free.

    `fit` says which hole a region is put into: `first`, `best`, `worst`, `next` or `buddy`. `growth` says how large it
    is for a number of tokens:
    - `chunk`: the next multiple of `chunk` slots;
    - `double`: the next power of two;
    - `exact`: as many slots as tokens;
    - `cat`: as many, and never in place: a framework's tensor concatenation allocates, copies and frees at each token.

    `tensors` (only with `cat`) is the number of tensors that a request's KV is kept in, 2 x layers for K and V of each
    layer. They are concatenated one after another, request after request, so that only the largest of them,
    ceil(written tokens / tensors) slots, is in two places during a step; with 1 the whole region is. The rule in full
    stands with `RegionAllocator`.
    `rounding_slots`: a region takes a multiple of it, as caching allocators round sizes up; the rest is `external`.
    `compaction` on-failure: where no hole fits although enough is free in all, all regions slide down first.
    """

    name = "contiguous"

    def __init__(
        self,
        pool_slots: int,
        *,
        fit: str = "first",
        growth: str = "chunk",
        chunk: int = 256,
        tensors: int = 1,
        rounding_slots: int = 1,
        compaction: str = "never",
    ) -> None:
        if growth not in GROWTHS:
            raise ValueError(f"growth is {growth}; it must be one of {', '.join(GROWTHS)}")
        if chunk < 1:
            raise ValueError(f"chunk is {chunk}; a region grows by at least one slot")
        if tensors < 1 or (tensors > 1 and growth != "cat"):
            raise ValueError(f"tensors is {tensors}; it must be at least 1, and 1 with any growth but cat")
        if rounding_slots < 1:
            raise ValueError(f"rounding_slots is {rounding_slots}; a region takes at least one slot")
        if compaction not in COMPACTIONS:
            raise ValueError(f"compaction is {compaction}; it must be one of {', '.join(COMPACTIONS)}")
        if compaction != "never" and fit == "buddy":
            raise ValueError(
                f"compaction is {compaction}, but the blocks of fit buddy have fixed places; use another fit"
            )
        super().__init__(
            pool_slots,
            fit=fit,
            unit=rounding_slots,
            in_place=growth != "cat",
            parts=tensors,
            compaction=compaction == "on-failure",
        )
        self.growth = growth
        self.chunk = chunk if growth == "chunk" else 1
        """Slots by which a region grows, unless it doubles."""

    def capacity(self, tokens: int) -> int:
        if self.growth == "double":
            return power_of_two(tokens)
        return -(-tokens // self.chunk) * self.chunk

    def last_growth(self, tokens: int) -> int:
        if self.growth == "double":
            return power_of_two(tokens) // 2
        return (tokens - 1) // self.chunk * self.chunk
