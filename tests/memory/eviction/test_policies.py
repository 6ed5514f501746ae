"""Policies of eviction: what each throws out, and what all of them promise."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvsim.memory.eviction import POLICIES
from tests.memory.eviction.trees import prompts


def after(policy, capacity_blocks, *served):
    """The cache of a policy that cannot see the future, after these prompts."""
    cache = POLICIES[policy](capacity_blocks, ())
    for blocks in served:
        cache.serve(blocks)
    return cache


def kept(cache, blocks):
    return [block for block in blocks if block in cache]


def test_only_the_unbroken_head_of_a_prompt_counts_as_found():
    cache = after("lru", 8, [1, 2, 3])
    assert cache.serve([1, 2, 9, 3]) == 2
    assert cache.serve([7, 1, 2]) == 0


def test_lru_throws_out_what_was_used_longest_ago_and_of_one_prompt_the_tail_first():
    assert kept(after("lru", 3, [1], [2, 3], [1], [4]), [1, 2, 3, 4]) == [1, 2, 4]


def test_lru_head_first_throws_out_the_head_of_a_prompt_and_finds_nothing_of_the_rest():
    cache = after("lru-head-first", 3, [1], [2, 3], [1], [4])
    assert kept(cache, [1, 2, 3, 4]) == [1, 3, 4]
    assert cache.serve([2, 3]) == 0


@pytest.mark.parametrize(("policy", "rest"), [("lru", [1, 2]), ("lru-head-first", [3, 4]), ("fifo", [1, 2])])
def test_a_prompt_larger_than_the_cache_leaves_the_part_that_was_touched_last(policy, rest):
    assert kept(after(policy, 2, [1, 2, 3, 4]), [1, 2, 3, 4]) == rest


def test_fifo_throws_out_what_came_first_however_often_it_was_used():
    assert kept(after("fifo", 2, [1], [2], [1], [1], [3]), [1, 2, 3]) == [2, 3]


def test_lfu_throws_out_the_fewest_uses_and_the_older_of_equals():
    assert kept(after("lfu", 3, [1], [1], [2], [3], [4]), [1, 2, 3, 4]) == [1, 3, 4]


def test_lfu_forgets_the_uses_of_what_it_throws_out():
    cache = after("lfu", 2, [1], [1], [2], [2], [2], [3], [3])
    assert kept(cache, [1, 2, 3]) == [1, 2]
    cache = after("lfu", 1, [1], [1], [1, 2], [3], [3])
    assert kept(cache, [1, 2, 3]) == [1]


def test_length_aware_throws_out_the_deepest_of_equally_many_uses():
    assert kept(after("length-aware", 3, [1, 2], [3], [4]), [1, 2, 3, 4]) == [1, 3, 4]
    assert kept(after("lfu", 3, [3], [1, 2], [4]), [1, 2, 3, 4]) == [1, 2, 4]


def test_s3_fifo_lets_a_single_scan_pass_beside_what_was_used_twice_on_trial():
    cache = after("s3-fifo", 10, *([[1]] * 3), *([block] for block in range(100, 150)))
    assert kept(cache, [1]) == [1]
    assert kept(after("lru", 10, *([[1]] * 3), *([block] for block in range(100, 150))), [1]) == []


def test_s3_fifo_takes_what_comes_back_from_its_ghosts_into_the_main_queue():
    scan = [[block] for block in range(100, 111)]
    cache = after("s3-fifo", 10, [1], *scan, [1], *([block] for block in range(200, 220)))
    assert kept(cache, [1]) == [1]


def test_optimal_keeps_what_is_used_next_and_nothing_that_never_is():
    served = [[1], [2], [3], [2], [1]]
    cache = POLICIES["optimal"](1, served)
    assert [cache.serve(blocks) for blocks in served] == [0, 0, 0, 1, 0]
    assert kept(cache, [1, 2, 3]) == []


@pytest.mark.parametrize("policy", POLICIES)
def test_a_cache_has_at_least_one_block(policy):
    with pytest.raises(ValueError, match="at least one block; got 0"):
        POLICIES[policy](0, ())


@pytest.mark.parametrize("policy", POLICIES)
@given(served=prompts(), capacity_blocks=st.integers(1, 40))
def test_every_policy_keeps_to_its_size_and_finds_what_it_has(policy, served, capacity_blocks):
    cache = POLICIES[policy](capacity_blocks, served)
    for blocks in served:
        there = kept(cache, blocks)
        found = cache.serve(blocks)
        assert blocks[:found] == there[:found]
        assert found == len(blocks) or blocks[found] not in there
        assert len(cache) <= capacity_blocks


@pytest.mark.parametrize("policy", POLICIES)
@given(served=prompts())
def test_every_policy_finds_all_that_was_ever_seen_where_all_fits(policy, served):
    cache = POLICIES[policy](1000, served)
    seen = set()
    for blocks in served:
        assert cache.serve(blocks) == sum(block in seen for block in blocks)
        seen.update(blocks)
