"""The ceiling: as good as trying everything, and no policy above it."""

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvsim.memory.eviction import POLICIES
from tests.memory.eviction.trees import prompts


def found(policy, capacity_blocks, served):
    return sum(map(POLICIES[policy](capacity_blocks, served).serve, served))


def most_found(capacity_blocks, served):
    """Whatever may be kept after each prompt, tried."""
    best = {frozenset(): 0}
    for blocks in served:
        after = {}
        for kept, hits in best.items():
            head = next((at for at, block in enumerate(blocks) if block not in kept), len(blocks))
            there = kept | set(blocks)
            for size in range(min(capacity_blocks, len(there)) + 1):
                for rest in map(frozenset, combinations(sorted(there), size)):
                    after[rest] = max(after.get(rest, 0), hits + head)
        best = after
    return max(best.values())


@settings(max_examples=60)
@given(served=prompts(most=6, longest=3), capacity_blocks=st.integers(1, 4))
def test_optimal_finds_as_much_as_trying_everything(served, capacity_blocks):
    assert found("optimal", capacity_blocks, served) == most_found(capacity_blocks, served)


@pytest.mark.parametrize("policy", POLICIES)
@given(served=prompts(), capacity_blocks=st.integers(1, 40))
def test_no_policy_finds_more_than_optimal(policy, served, capacity_blocks):
    assert found(policy, capacity_blocks, served) <= found("optimal", capacity_blocks, served)
