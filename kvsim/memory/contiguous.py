"""`contiguous`: the naive way, one region per request that grows with it."""

from kvsim.memory.regions import RegionAllocator


class ContiguousAllocator(RegionAllocator):
    """A region that holds the whole prompt from admission on and grows by chunks of `chunk` slots, first fit."""

    name = "contiguous"

    def __init__(self, pool_slots: int, *, chunk: int = 256) -> None:
        if chunk < 1:
            raise ValueError(f"chunk is {chunk}; a region grows by at least one slot")
        super().__init__(pool_slots)
        self.chunk = chunk

    def capacity(self, tokens: int) -> int:
        return -(-tokens // self.chunk) * self.chunk

    def last_growth(self, tokens: int) -> int:
        return (tokens - 1) // self.chunk * self.chunk
