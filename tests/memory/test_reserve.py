"""`reserve`, told by hand: every request takes the model's limit at admission and never grows."""

from functools import partial

import pytest

from kvsim.memory.reserve import ReserveAllocator
from kvsim.request import Sequence
from kvsim.step import Ask, Grant, PoolUse, Short
from tests.memory import stories

decoding = partial(stories.decoding, admit=True, granted=Grant())


@pytest.mark.parametrize("tokens", [1, 7, 50])
def test_a_request_of_any_length_takes_the_models_limit(tokens):
    allocator = ReserveAllocator(120, max_model_len=50)
    [one] = decoding(allocator, tokens)
    assert allocator.owned(one) == allocator.capacity(tokens) == 50
    assert allocator.usage() == PoolUse(tokens, 50 - tokens, 0, 0, 0, 70, 70)


def test_as_many_run_as_the_limit_goes_into_the_pool():
    allocator = ReserveAllocator(120, max_model_len=50)
    decoding(allocator, 1, 1)
    third = Sequence(2, 1, None, tokens=1)
    assert allocator.acquire([Ask(third, 1, admit=True)]) == Short("capacity", 50, 20, 20)
    assert allocator.external(50) == 0  # all that is free is one hole, smaller than the need: what is free fits


def test_it_never_grows_and_never_copies():
    allocator = ReserveAllocator(100, max_model_len=50)
    one, _ = decoding(allocator, 10, 10)
    for _ in range(40):
        assert allocator.acquire([], decodes=True) == Grant(0)
        assert not allocator.settle([])
    assert allocator.usage() == PoolUse(100, 0, 0, 0, 0, 0, 0)
    assert allocator.last_growth(50) == 0
    allocator.release(one)
    assert allocator.usage() == PoolUse(50, 0, 0, 0, 0, 50, 50)


def test_equal_regions_leave_no_hole_that_does_not_fit_but_the_rest_at_the_end():
    allocator = ReserveAllocator(170, max_model_len=50)
    held = decoding(allocator, *[5] * 3)
    allocator.release(held[1])
    # Holes: 50..99 and the 20 slots at the end that no region will ever fit.
    assert allocator.external(50) == 20
    assert allocator.usage().largest_hole == 50


def test_a_leap_is_bounded_by_the_limit_alone():
    allocator = ReserveAllocator(100, max_model_len=50)
    decoding(allocator, 10)
    assert allocator.leap(1000).steps == 40


def test_a_limit_below_one_token_is_refused():
    with pytest.raises(ValueError, match="max_model_len is 0"):
        ReserveAllocator(100, max_model_len=0)
