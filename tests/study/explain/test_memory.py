"""The pool that is shown is the pool of kvsim's allocators, and of its engine."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvsim import Scenario, run
from kvsim.errors import InputError
from kvsim.memory.paged import PagedAllocator
from kvsim.memory.prefix import PrefixAllocator
from kvsim.study.explain.example import example, walk
from kvsim.study.explain.memory import live, lives


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 4), st.booleans())
def test_the_classes_add_up_to_the_pool_in_every_phase_and_release_gives_all_back(prompt, output, size, caching):
    allocator = (PrefixAllocator if caching else PagedAllocator)(40, block_size=size)
    for life in lives(allocator, prompt, output, requests=2):
        for one in life.moments:
            assert one.used + one.reserved + one.internal + one.cached + one.free == allocator.pool_slots
            assert min(one.used, one.reserved, one.internal, one.cached, one.free) >= 0
        last = life.moments[-1]
        assert (last.phase, last.used + last.reserved + last.internal) == ("release", 0)
        assert life.moments[-2].written == prompt + output - 1
    allocator.audit([])


def test_the_example_takes_two_blocks_and_writes_one_token_fewer_than_it_has():
    [life] = walk().uncached
    told = [(one.phase, one.used, one.reserved, one.free) for one in life.moments]
    assert told == [
        ("before", 0, 0, 8),
        ("allocate", 0, 4, 4),
        ("prefill", 3, 1, 4),
        ("decode", 4, 0, 4),
        ("release", 0, 0, 8),
    ]


def test_where_blocks_keep_their_contents_the_same_prompt_finds_its_whole_blocks_again():
    first, second = walk().cached
    assert (first.hit_tokens, second.hit_tokens) == (0, 2)
    assert [(one.cached, one.free) for one in first.after("release")] == [(4, 4)]
    allocated = second.after("allocate")[0]
    assert (allocated.used, allocated.reserved, allocated.cached, allocated.free) == (2, 2, 2, 2)


def test_tail_slots_that_nobody_will_write_are_internal():
    life = live(PagedAllocator(32, block_size=16), 0, prompt_tokens=10, output_tokens=3)
    [prefilled] = life.after("prefill")
    assert (prefilled.used, prefilled.reserved, prefilled.internal) == (10, 2, 4)


def test_a_pool_that_is_too_small_is_refused_with_what_is_short():
    with pytest.raises(InputError, match="too small: Short"):
        live(PagedAllocator(4, block_size=2), 0, prompt_tokens=5, output_tokens=2)


def test_the_engine_has_the_same_pool_at_every_step_of_such_a_request():
    given = example()
    result = run(
        Scenario.from_dict(
            {
                "model": "qwen2.5-1.5b",
                "gpu": "RTX 4090",
                "pool": {"blocks": given.pool_blocks},
                "allocator": {"name": "paged", "block_size": given.block_size},
                "workload": {
                    "requests": 1,
                    "rate": "1/s",
                    "prompt_tokens": given.prompt_tokens,
                    "output_tokens": given.output_tokens,
                },
            }
        ),
        stepwise=True,
    )
    [life] = walk().uncached
    shown = [(one.used, one.reserved, one.internal, one.free) for one in life.moments[1:]]
    engine = list(result.memory[["used", "reserved", "internal", "free"]].itertuples(index=False, name=None))
    # The engine grants a step's slots and settles them at its end: the last token is written as the request leaves.
    assert [one for one in engine if one != (0, 0, 0, 8)] == shown[:2]
    assert engine[-1] == shown[-1]
