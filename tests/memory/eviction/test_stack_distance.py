"""LRU at every size in one pass equals LRU at each size."""

from bisect import bisect_right

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvsim.memory.eviction import POLICIES
from kvsim.memory.eviction.stack_distance import needed_blocks
from tests.memory.eviction.trees import prompts

ANY_PROMPTS = st.lists(st.lists(st.integers(0, 12), max_size=8), max_size=30)
"""Blocks in any order, also twice in a prompt: no prefixes, but LRU is LRU."""


def test_a_block_needs_room_for_itself_and_all_that_was_touched_since():
    assert list(needed_blocks([[1, 2], [3], [1, 2, 4], [3]])) == [[], [], [2, 3], [4]]


def test_head_first_a_head_needs_room_for_its_tail():
    assert list(needed_blocks([[1, 2], [1, 2]], head_first=True)) == [[], [2, 2]]
    assert list(needed_blocks([[1, 2], [1, 2]])) == [[], [1, 2]]


@pytest.mark.parametrize("policy", ["lru", "lru-head-first"])
@given(served=prompts() | ANY_PROMPTS)
def test_the_pass_finds_what_a_cache_of_each_size_finds(policy, served):
    needed = list(needed_blocks(served, head_first=policy == "lru-head-first"))
    for capacity_blocks in range(1, 16):
        cache = POLICIES[policy](capacity_blocks, served)
        assert [bisect_right(one, capacity_blocks) for one in needed] == list(map(cache.serve, served))
