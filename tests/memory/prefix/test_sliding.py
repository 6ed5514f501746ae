"""Windows: what lies behind them, what must be cached for a hit, what is worth keeping."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvsim.memory.prefix import SlidingGroup


def group(window, block_size=4, retention=0, in_flight=16, max_len=512):
    return SlidingGroup(
        window=window,
        block_size=block_size,
        retention_tokens=retention,
        max_in_flight_tokens=in_flight,
        max_model_len=max_len,
    )


@given(st.integers(1, 20), st.integers(1, 5), st.integers(0, 60))
def test_a_block_is_behind_when_the_next_token_sees_none_of_it(window, size, computed):
    """The next token is number `computed` and sees those from computed - window + 1 on."""
    behind = group(window, size).behind(computed)
    seen = range(max(0, computed - window + 1), computed + 1)
    assert behind == seen[0] // size


def test_the_most_blocks_are_the_window_and_the_flight_and_one_that_is_cut():
    """ceil(min(64 - 1 + 128, 512) / 16) + 1 (rule 27)."""
    assert group(64, 16, in_flight=128).most_blocks == 13
    assert group(64, 16, in_flight=2048).most_blocks == 33


@given(st.integers(1, 14), st.integers(1, 4), st.lists(st.booleans(), max_size=12))
def test_a_hit_ends_at_the_last_boundary_with_its_window_cached(window, size, cached):
    """By trying every boundary: its tail is cached, or everything before it."""
    chain = range(1, len(cached) + 1)
    blocks = group(window, size).hit(chain, len(cached), lambda n: (n,) if cached[n - 1] else None, (0,))
    # A window of one token needs nothing before a boundary, but a boundary is only looked for where a block is.
    tail = max(1, -(-(window - 1) // size))
    right = max(end for end in range(len(cached) + 1) if end == 0 or all(cached[max(0, end - tail) : end]))
    assert len(blocks) == right
    assert all(block == (place + 1,) for place, block in enumerate(blocks) if block != (0,))
    assert all(block != (0,) for block in blocks[-tail:])


@pytest.mark.parametrize(
    ("retention", "kept"),
    [
        (None, range(12)),  # dense
        (0, [7, 8]),  # the prompt of 37 tokens ends in block 9: its replay starts at token 36
        (16, [2, 3, 6, 7, 8, 10, 11]),  # also two blocks before every 16th token
        (8, range(12)),  # two blocks of every two
    ],
)
def test_retention_keeps_tails_only(retention, kept):
    """A window of 9 on blocks of 4 needs two blocks before a boundary."""
    window = group(9, retention=retention)
    assert [block for block in range(12) if window.keeps(block, [36])] == list(kept)


def test_a_junction_keeps_its_tail_too():
    assert [block for block in range(12) if group(9).keeps(block, [36, 21])] == [3, 4, 7, 8]


def test_retention_must_be_whole_blocks():
    with pytest.raises(ValueError, match=r"retention_interval is 6; it must be a multiple of block_size \(4\)"):
        group(8, retention=6)
