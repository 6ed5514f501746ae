"""`reserve`: one region per request, sized at admission and never grown (the slot-per-sequence serving of 2022)."""

from kvsim.memory.addresses import power_of_two
from kvsim.memory.regions import RegionAllocator

SIZES = ("max", "pow2", "oracle")
"""What is reserved."""


class ReserveAllocator(RegionAllocator):
    """Every request gets at admission all the room that it will ever have, put into a hole by `fit`.

    `size` says how much, in the words of the PagedAttention paper (section 6.1) on Orca:
    - `max`: the model's limit, `max_model_len` slots, whatever it will use;
    - `pow2`: its prompt, and its true output rounded up to a power of two (25 -> 32), at most the model's limit;
    - `oracle`: what it will write, to the slot: its prompt and its true output less the last token.

    `pow2` and `oracle` know by definition what no engine knows, and are told through `declare`. A request of which
    nothing was declared holds what it has, and grows token by token.
    """

    name = "reserve"

    def __init__(self, pool_slots: int, *, max_model_len: int, size: str = "max", fit: str = "first") -> None:
        if max_model_len < 1:
            raise ValueError(f"max_model_len is {max_model_len}; it must be at least one token")
        if size not in SIZES:
            raise ValueError(f"size is {size}; it must be one of {', '.join(SIZES)}")
        super().__init__(pool_slots, fit=fit)
        self.max_model_len = max_model_len
        self.size = size

    def declare(self, prompt_tokens: int, output_tokens: int) -> int:
        if self.size == "max" or not output_tokens:
            return 0
        if self.size == "oracle":
            return prompt_tokens + output_tokens - 1
        return min(prompt_tokens + power_of_two(output_tokens), self.max_model_len)

    def capacity(self, tokens: int) -> int:
        return self.max_model_len if self.size == "max" else tokens

    def last_growth(self, tokens: int) -> int:
        return 0 if self.size == "max" else tokens - 1
