"""`reserve` with `pow2` and `oracle`, told by hand: what a request declares is what it holds from admission on."""

import pytest

from kvsim.memory.reserve import ReserveAllocator
from kvsim.request import Sequence
from kvsim.step import Ask, Chunk, Grant, PoolUse, Short


def declared(allocator: ReserveAllocator, number: int, prompt: int, output: int) -> Sequence:
    return Sequence(number, prompt, None, tokens=prompt, declared=allocator.declare(prompt, output), admission=number)


@pytest.mark.parametrize(
    ("size", "prompt", "output", "tokens"),
    [
        ("max", 10, 25, 0),  # it needs no truth
        ("pow2", 10, 25, 42),  # 25 -> 32, the paper's own example
        ("pow2", 10, 32, 42),
        ("pow2", 10, 33, 74),
        ("pow2", 10, 1, 11),
        ("pow2", 90, 25, 100),  # no longer than the model's limit
        ("oracle", 10, 25, 34),  # the last token is never written
        ("oracle", 10, 1, 10),
        ("oracle", 10, 0, 0),
    ],
)
def test_a_request_declares_what_its_size_says(size, prompt, output, tokens):
    assert ReserveAllocator(1000, max_model_len=100, size=size).declare(prompt, output) == tokens


@pytest.mark.parametrize(("size", "slots"), [("max", 100), ("pow2", 42), ("oracle", 34)])
def test_what_is_declared_is_held_from_admission_on_whatever_the_first_chunk(size, slots):
    allocator = ReserveAllocator(200, max_model_len=100, size=size)
    one = declared(allocator, 0, 10, 25)
    assert allocator.acquire([Ask(one, 4, admit=True)]) == Grant()
    assert allocator.owned(one) == slots
    allocator.settle([Chunk(one, 4, 0)])
    assert allocator.usage() == PoolUse(4, slots - 4, 0, 0, 0, 200 - slots, 200 - slots)


def test_an_oracles_region_is_full_at_the_last_step_and_never_grows():
    allocator = ReserveAllocator(100, max_model_len=100, size="oracle")
    one = declared(allocator, 0, 10, 25)
    allocator.acquire([Ask(one, 10, admit=True)])
    allocator.settle([Chunk(one, 10, 0)])
    one.tokens += 1
    allocator.begin_decode(one)
    assert allocator.leap(1000).steps == 24
    allocator.leap(24).apply(24)
    assert allocator.usage() == PoolUse(34, 0, 0, 0, 0, 66, 66)


def test_regions_of_different_sizes_leave_holes_and_best_fit_takes_the_tightest():
    starts = {}
    for fit in ("first", "best"):
        allocator = ReserveAllocator(100, max_model_len=100, size="oracle", fit=fit)
        batch = [declared(allocator, number, prompt, 1) for number, prompt in enumerate((30, 10, 20, 10, 30))]
        allocator.acquire([Ask(one, one.tokens, admit=True) for one in batch])
        allocator.settle([Chunk(one, one.tokens, 0) for one in batch])
        allocator.release(batch[0])
        allocator.release(batch[2])
        newcomer = declared(allocator, 9, 18, 1)
        assert allocator.acquire([Ask(newcomer, 18, admit=True)]) == Grant()
        starts[fit] = allocator.usage().largest_hole
    assert starts == {"first": 20, "best": 30}  # into 0..29, or into 40..59


def test_over_a_buddy_the_rounding_of_what_was_asked_is_external():
    allocator = ReserveAllocator(128, max_model_len=100, size="oracle", fit="buddy")
    one = declared(allocator, 0, 10, 25)
    assert allocator.acquire([Ask(one, 10, admit=True)]) == Grant()
    assert allocator.owned(one) == 34
    assert allocator.usage() == PoolUse(0, 34, 0, 0, 0, 64, 64, rounding=30)
    assert allocator.external(64) == 30
    assert allocator.external(65) == 30  # more than all that is free, which is one block
    other = declared(allocator, 1, 65, 1)
    assert allocator.acquire([Ask(other, 65, admit=True)]) == Short("capacity", 128, 64, 64)


def test_the_pool_of_the_paper_holds_seven_requests_at_the_models_limit_and_leaves_885_percent_external():
    """PagedAttention, figures 2 and 13a, Orca (Max): a batch of 7.00 and 8.9 % of the slots lost (SOSP 2023)."""
    allocator = ReserveAllocator(15728, max_model_len=2048, fit="buddy")
    batch = [Sequence(number, 161, None, tokens=161, admission=number) for number in range(8)]
    got = [allocator.acquire([Ask(one, 161, admit=True)]) for one in batch]
    assert got == [Grant()] * 7 + [Short("capacity", 2048, 1392, 1024)]
    # What is free is 1,024 + 256 + 64 + 32 + 16: no block is as large as all of it together, so none of it is usable.
    assert allocator.external(2048) == allocator.usage().free == 15728 - 7 * 2048
    assert allocator.external(2048) / 15728 == pytest.approx(0.0885, abs=5e-5)


def test_an_unknown_size_is_refused():
    with pytest.raises(ValueError, match="size is half; it must be one of max, pow2, oracle"):
        ReserveAllocator(100, max_model_len=10, size="half")
