"""`reserve`: one region per request, sized at admission and never grown (the slot-per-sequence serving of 2022)."""

from kvsim.memory.regions import RegionAllocator


class ReserveAllocator(RegionAllocator):
    """Every request gets room for the model's limit, `max_model_len` slots, whatever it will use (Orca's Max)."""

    name = "reserve"

    def __init__(self, pool_slots: int, *, max_model_len: int) -> None:
        if max_model_len < 1:
            raise ValueError(f"max_model_len is {max_model_len}; it must be at least one token")
        super().__init__(pool_slots)
        self.max_model_len = max_model_len

    def capacity(self, tokens: int) -> int:
        return self.max_model_len

    def last_growth(self, tokens: int) -> int:
        return 0
