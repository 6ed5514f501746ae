"""Hit rates of recorded traces: numbers published, and numbers that others counted from the same files.

Requests in file order, times ignored: the leading resident blocks are hits, then all blocks of the request are touched,
then blocks are evicted down to the capacity.
"""

import os
from functools import cache
from itertools import accumulate
from pathlib import Path

import pytest

from kvsim.memory.eviction import POLICIES
from kvsim.study.hits.curve import Asked, LruCurve
from kvsim.workload.trace.prefixes import read_prefixes

pytestmark = pytest.mark.oracle

CONVERSATION = "mooncake/conversation_trace.jsonl.gz"
SYNTHETIC = "mooncake/synthetic_trace.first600s.jsonl.gz"
MINISWE = "agent_lmcache/miniswe_qwen_blksz_16.jsonl.gz"
MAGAGENT = "agent_lmcache/magagent_qwen_blksz_16.jsonl.gz"
THREE_MILLION_TOKENS = 3_000_000 // 512


@cache
def prefixes(name):
    folder = os.environ.get("KVSIM_DATA")
    if not folder:
        pytest.skip("KVSIM_DATA names no folder of recorded traces")
    return read_prefixes(Path(folder, "traces", name))


@cache
def lru(name, full_blocks=False, head_first=False):
    return LruCurve(Asked(prefixes(name), full_blocks=full_blocks), head_first=head_first)


@cache
def rate(name, policy, capacity_blocks):
    if policy in ("lru", "lru-head-first"):
        return lru(name, head_first=policy == "lru-head-first").rate(capacity_blocks).blocks
    asked = Asked(prefixes(name), full_blocks=False)
    return asked.rate(list(map(POLICIES[policy](capacity_blocks, asked.prompts).serve, asked.prompts))).blocks


# Counted from the files by a program that shares nothing with kvsim; to the digits it printed.
GOLDEN = [
    (CONVERSATION, 1024, 0.0445, 0.0448),
    (CONVERSATION, 4096, 0.0876, 0.0879),
    (CONVERSATION, 16384, 0.2656, 0.2656),
    (CONVERSATION, 65536, 0.3594, 0.3594),
    (SYNTHETIC, 1024, 0.0182, 0.0182),
    (SYNTHETIC, 4096, 0.0738, 0.0775),
    (SYNTHETIC, 16384, 0.2783, 0.2793),
    (MINISWE, 512, 0.461, 0.648),
    (MINISWE, 1024, 0.574, 0.780),
    (MINISWE, 4096, 0.932, 0.932),
    (MAGAGENT, 512, 0.365, 0.582),
    (MAGAGENT, 1024, 0.647, 0.747),
    (MAGAGENT, 4096, 0.844, 0.844),
]


@pytest.mark.parametrize(("name", "capacity_blocks", "head_first", "tail_first"), GOLDEN)
def test_lru_finds_what_another_count_found_in_either_order_of_touching(name, capacity_blocks, head_first, tail_first):
    half_a_digit = 0.00005 if "mooncake" in name else 0.0005
    for policy, expected in (("lru-head-first", head_first), ("lru", tail_first)):
        assert rate(name, policy, capacity_blocks) == pytest.approx(expected, abs=half_a_digit)


@pytest.mark.parametrize("name", [CONVERSATION, MINISWE])
def test_the_pass_over_all_sizes_equals_a_cache_of_one_size(name):
    asked = Asked(prefixes(name), full_blocks=False)
    for head_first, policy in ((False, "lru"), (True, "lru-head-first")):
        for capacity_blocks in (700, 5000):
            served = POLICIES[policy](capacity_blocks, asked.prompts)
            simulated = asked.rate(list(map(served.serve, asked.prompts)))
            assert simulated == lru(name, head_first=head_first).rate(capacity_blocks)


@pytest.mark.parametrize(
    ("name", "blocks", "distinct", "all_blocks", "full_blocks", "tokens"),
    [
        (CONVERSATION, 288_500, 182_790, 0.366, 0.382, 0.374),
        (SYNTHETIC, None, None, 0.362, 0.376, None),
        (MINISWE, 158_919, 10_645, 0.933, None, 0.934),
        (MAGAGENT, 98_676, 15_411, 0.844, None, 0.844),
    ],
)
def test_the_ideal_is_what_another_count_found(name, blocks, distinct, all_blocks, full_blocks, tokens):
    asked = prefixes(name)
    assert blocks in (None, sum(map(len, asked.blocks)))
    assert distinct in (None, asked.distinct_blocks)
    assert asked.other_ways == 0
    assert lru(name).ideal.blocks == pytest.approx(all_blocks, abs=0.0005)
    assert full_blocks is None or lru(name, full_blocks=True).ideal.blocks == pytest.approx(full_blocks, abs=0.0005)
    assert tokens is None or lru(name).ideal.tokens == pytest.approx(tokens, abs=0.0005)


def test_the_conversation_trace_has_the_ideal_and_the_point_at_3_million_tokens_of_mooncake_fast25():
    """Qin et al., Mooncake, FAST'25, table 2 and figure 9: 40 % at most, at 3M tokens 41 % of that.

    To 0.03 and 5 points, since the paper's 0.40 comes out only where generated tokens are cached too.
    """
    assert lru(CONVERSATION, full_blocks=True).ideal.blocks == pytest.approx(0.40, abs=0.03)
    for full_blocks in (False, True):
        curve = lru(CONVERSATION, full_blocks=full_blocks)
        assert curve.rate(THREE_MILLION_TOKENS).blocks / curve.ideal.blocks == pytest.approx(0.41, abs=0.05)


def test_the_synthetic_slice_reaches_a_third_of_its_ideal_at_3_million_tokens():
    """33 to 34 %, counted from the slice by others; the whole trace, which is not here, has 48 % (published 46)."""
    for full_blocks in (False, True):
        curve = lru(SYNTHETIC, full_blocks=full_blocks)
        assert round(100 * curve.rate(THREE_MILLION_TOKENS).blocks / curve.ideal.blocks) in (33, 34)


SIZES = [10_000, 30_000, 50_000, 100_000]
"""Of table 1 of Mooncake (arXiv 2407.00079), whose trace is not public: its order is tried on those that are."""


@pytest.mark.parametrize("capacity_blocks", SIZES)
def test_lru_is_at_least_lfu_and_lfu_at_least_length_aware(capacity_blocks):
    rates = [rate(CONVERSATION, policy, capacity_blocks) for policy in ("lru", "lfu", "length-aware")]
    assert rates == sorted(rates, reverse=True)


@pytest.mark.parametrize("capacity_blocks", SIZES)
def test_lfu_is_at_least_length_aware_on_the_synthetic_slice(capacity_blocks):
    assert rate(SYNTHETIC, "lfu", capacity_blocks) >= rate(SYNTHETIC, "length-aware", capacity_blocks)


@pytest.mark.xfail(
    reason="on the synthetic slice LFU finds 0.197 and LRU 0.188 at 10,000 blocks; 0.3518, 0.3515 at 30,000"
)
@pytest.mark.parametrize("capacity_blocks", SIZES[:2])
def test_lru_is_at_least_lfu_on_the_synthetic_slice(capacity_blocks):
    assert rate(SYNTHETIC, "lru", capacity_blocks) >= rate(SYNTHETIC, "lfu", capacity_blocks)


@pytest.mark.parametrize("name", [SYNTHETIC, MINISWE])
@pytest.mark.parametrize("policy", POLICIES)
def test_no_policy_finds_more_than_optimal(name, policy):
    assert rate(name, policy, 1024) <= rate(name, "optimal", 1024)


@pytest.mark.parametrize(("policy", "theirs"), [("lru", "lru"), ("lru-head-first", "lru"), ("optimal", "optimal")])
@pytest.mark.parametrize(("name", "capacity_blocks"), [(CONVERSATION, 1024), (CONVERSATION, 16384), (MINISWE, 1024)])
def test_kvcache_simulator_finds_the_same_within_a_point(name, capacity_blocks, policy, theirs):
    """PyPI kvcache-simulator (KVCache.AI), its Python simulation: tokens found by the last half of the requests."""
    pytest.importorskip("kvcache_sim", reason="kvcache-simulator is not installed (pip install -e .[oracles])")
    from kvcache_sim.plan import build_execution_plan
    from kvcache_sim.policies import simulate_policy
    from kvcache_sim.trace import parse_trace_file

    asked = prefixes(name)
    counted = Asked(asked, full_blocks=False)
    found = list(map(POLICIES[policy](capacity_blocks, counted.prompts).serve, counted.prompts))
    upto = list(accumulate(map(counted.tokens_in, found, asked.tokens), initial=0))
    half = len(found) // 2
    ours = (upto[-1] - upto[half]) / sum(asked.tokens[half:])
    plan = build_execution_plan(parse_trace_file(asked.trace, block_size=asked.block_tokens), warmup_fraction=0.5)
    other = simulate_policy(plan, theirs, capacity_blocks).hitRate
    print(f"{name} {capacity_blocks} {policy}: {ours:.4f}, kvcache-simulator {other:.4f}")
    assert ours == pytest.approx(other, abs=0.01)
