"""Hit curves: rates by blocks and tokens, the ideal, the knee, and what is said about them."""

from array import array
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvsim.errors import InputError
from kvsim.memory.eviction import POLICIES
from kvsim.study.hits.curve import default_sizes, hit_curve
from kvsim.study.hits.record import record
from kvsim.study.hits.sizes import blocks_of
from kvsim.workload.trace.prefixes import Prefixes, read_prefixes
from tests.memory.eviction.trees import prompts


def prefixes(*asked, block_tokens=10):
    """Prompts as (tokens, blocks)."""
    return Prefixes(
        trace="made-up",
        format="mooncake",
        block_tokens=block_tokens,
        tokens=array("q", [tokens for tokens, _ in asked]),
        blocks=[array("q", blocks) for _, blocks in asked],
        distinct_blocks=len({block for _, blocks in asked for block in blocks}),
        other_ways=0,
        rows_read=len(asked),
        rows_dropped={},
    )


TWICE = prefixes((25, [0, 1, 2]), (25, [0, 1, 2]))


def test_a_partly_filled_block_counts_as_a_block_and_with_the_tokens_it_has():
    curve = hit_curve(TWICE, policies=["lru"], sizes_blocks=[2, 3])
    assert [(rate.blocks, rate.tokens) for rate in curve.rates["lru"]] == [(2 / 6, 20 / 50), (3 / 6, 25 / 50)]


def test_full_blocks_alone_leave_it_out_and_tokens_stay_those_of_the_prompts():
    curve = hit_curve(TWICE, policies=["lru"], sizes_blocks=[3], full_blocks=True)
    assert (curve.lru.ideal.blocks, curve.lru.ideal.tokens) == (2 / 4, 20 / 50)
    assert hit_curve(TWICE, policies=["lru"], sizes_blocks=[3]).ideal_full_blocks == curve.lru.ideal


def test_the_knee_is_the_smallest_size_that_reaches_the_share():
    lru = hit_curve(TWICE, policies=["lru"], sizes_blocks=[3]).lru
    assert [lru.smallest(share) for share in (0.3, 0.34, 0.67, 1.0)] == [1, 2, 3, 3]


def test_where_nothing_is_shared_there_is_no_knee():
    found = record(hit_curve(prefixes((10, [0]), (10, [1])), policies=["lru", "optimal"]))
    assert found["lru_needs"] == {"0.5": None, "0.9": None, "0.99": None}
    assert found["points"][0]["policies"]["optimal"]["share_of_ideal"] is None


def test_prompts_of_less_than_a_block_have_nothing_to_share():
    with pytest.raises(InputError, match="no prompt has a block of 10 tokens"):
        hit_curve(prefixes((5, [0])), policies=["lru"], full_blocks=True)
    assert hit_curve(prefixes((5, [0])), policies=["lru"]).ideal_full_blocks is None


def test_sizes_double_up_to_the_whole():
    assert default_sizes(1) == [1]
    assert default_sizes(5) == [1, 2, 4, 5]
    assert default_sizes(9821) == [2**power for power in range(4, 14)] + [9821]


@given(served=prompts().filter(any), sizes=st.lists(st.integers(1, 50), min_size=1, max_size=4))
def test_one_pass_and_one_size_at_a_time_agree_rise_with_the_size_and_end_at_the_ideal(served, sizes):
    asked = prefixes(*((10 * len(blocks), blocks) for blocks in served if blocks))
    curve = hit_curve(asked, policies=list(POLICIES), sizes_blocks=[*sizes, 1000])
    for policy, rates in curve.rates.items():
        assert rates[-1] == curve.lru.ideal
        assert all(rate.blocks == pytest.approx(rate.tokens) for rate in rates)
        assert all(rate.blocks <= best.blocks for rate, best in zip(rates, curve.rates["optimal"], strict=True))
        if policy in ("lru", "optimal"):
            assert all(less.blocks <= more.blocks for less, more in pairwise(rates))


def test_the_packaged_slice_has_the_rates_counted_by_hand():
    """Counted with a set and a list, not with kvsim: 1,528 of 11,349 blocks were seen before at a prompt's head."""
    curve = hit_curve(read_prefixes("mooncake-conversation"), policies=["lru"])
    assert curve.lru.ideal.blocks == 1528 / 11_349
    assert curve.prefixes.distinct_blocks == 9821


def test_the_record_says_what_the_trace_tells_apart_and_that_it_was_read_whole():
    found = record(hit_curve(TWICE, policies=["lru"]), model="m", bytes_per_token=2**20)
    assert found["points"][0]["size"] == {"blocks": 1, "tokens": 10, "gib": 10 / 1024}
    assert found["prefix_identity"] == "prefixes"
    notes = " ".join(found["notes"])
    assert "blocks of 10 tokens: up to 9 shared tokens" in notes
    assert "2 of 2 prompts end in a partly filled block" in notes


@pytest.mark.parametrize(
    ("text", "blocks"), [("64", 64), ("3000000tokens", 5859), ("3000000 tokens", 5859), ("1GiB", 16), (" 8 ", 8)]
)
def test_sizes_are_blocks_tokens_or_bytes(text, blocks):
    assert blocks_of(text, 512, 2**17) == blocks


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0", "--sizes 0: is less than one block of 512 tokens"),
        ("511tokens", "is less than one block"),
        ("1KiB", "needs --model"),
        ("1.5", "1.5 has no unit"),
        ("many", "is not a size"),
        ("", "is not a size"),
    ],
)
def test_a_size_that_is_none_is_refused_with_what_would_be_right(text, said):
    with pytest.raises(InputError) as caught:
        blocks_of(text, 512, None)
    assert said in str(caught.value)
    assert "write blocks (65536), tokens (3000000tokens) or, with --model, bytes (40GiB)" in str(caught.value)
