"""Tokens touched between two moments, one pass against a list of all touches."""

from hypothesis import given
from hypothesis import strategies as st

from kvsim.memory.eviction.stack_distance import needed_blocks
from kvsim.metrics.prefix.recency import Recency


@given(st.lists(st.lists(st.integers(-5, 20), max_size=4), max_size=40), st.data())
def test_what_lies_between_two_moments_is_the_sum_over_them(moments, data):
    recency, weights = Recency(), []
    for changes in moments:
        assert recency.open() == len(weights)
        weights.append(0)
        for tokens in changes:
            at = data.draw(st.integers(0, len(weights) - 1))
            recency.add(at, tokens)
            weights[at] += tokens
        first, last = sorted(data.draw(st.tuples(st.integers(0, len(weights)), st.integers(0, len(weights)))))
        assert recency.between(first, last) == (sum(weights[first + 1 : last]) if last > first else 0)
    assert recency.tokens == sum(weights)


@given(st.lists(st.integers(0, 20), max_size=40), st.data())
def test_merging_moments_changes_nothing_between_those_that_are_kept(weights, data):
    recency = Recency()
    for tokens in weights:
        recency.add(recency.open(), tokens)
    kept = sorted(data.draw(st.sets(st.integers(0, len(weights) - 1)))) if weights else []
    merged, numbers = recency.merged(kept)
    assert merged.moments <= 2 * len(kept) + 1
    assert merged.tokens == recency.tokens
    now, then = recency.open(), merged.open()
    for one in (*kept, now):
        for other in (*kept, now):
            renamed = (numbers.get(moment, then) for moment in (one, other))
            assert merged.between(*renamed) == recency.between(one, other)
    if kept:
        recency.add(kept[0], -weights[kept[0]])
        merged.add(numbers[kept[0]], -weights[kept[0]])
        assert merged.between(numbers[kept[0]], then) == recency.between(kept[0], now)


@given(st.lists(st.integers(0, 8), min_size=1, max_size=60))
def test_with_one_block_a_moment_it_is_the_lru_stack_distance(blocks):
    recency, last, distances = Recency(), {}, []
    for block in blocks:
        now = recency.open()
        if block in last:
            distances.append(recency.between(last[block], now))
            recency.add(last[block], -1)
        recency.add(now, 1)
        last[block] = now
    needed = [sizes[0] for sizes in needed_blocks([[block] for block in blocks]) if sizes]
    assert distances == [size - 1 for size in needed]
