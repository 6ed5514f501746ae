"""Policies: memory of a rank to KV, blocks and printed lines, one engine after the other."""

import pytest

from kvsim.capacity.engines import policy
from kvsim.capacity.engines.interface import Memory, Printed
from kvsim.capacity.layout.groups import Group, Layout
from kvsim.capacity.overheads.releases import release
from kvsim.capacity.span import Span
from kvsim.units import GIB

PLAIN = Layout((Group("full", 32),), 16, 2 * 2**20)


def memory(**parts):
    sizes = {"total": 80, "weights": 15, "activation": 2, "non_torch": 1, "cuda_graphs": 0.5} | parts
    spans = {name: Span.exactly(gib * GIB) for name, gib in sizes.items() if name not in ("share", "used_by_others")}
    return Memory(share=parts.get("share", 0.9), used_by_others=int(parts.get("used_by_others", 0) * GIB), **spans)


@pytest.mark.parametrize(
    ("engine", "gib"),
    [
        ("vllm@0.6.3", 72 - 15 - 2 - 1),
        ("vllm@0.19", 72 - 15 - 2 - 1),
        ("vllm@0.21", 72 - 15 - 2 - 1 - 0.5),
        ("vllm@0.33", 72 - 15 - 2 - 1 - 0.5),
        ("sglang@0.5", 0.9 * (80 - 1) - 15),
        ("trtllm@1.0", 0.9 * (80 - 15 - 2 - 1)),
        ("llama.cpp", 80 - 15 - 2 - 1),
        ("distserve", (0.9 - 0.01) * 80 - 15),
    ],
)
def test_kv_memory_by_each_policy(engine, gib):
    assert policy(release(engine)).kv_bytes(memory()).best == pytest.approx(gib * GIB, abs=2)


@pytest.mark.parametrize(
    ("engine", "counts"), [("vllm@0.6.3", True), ("vllm@0.19", False), ("sglang@0.5", True), ("trtllm@1.0", True)]
)
def test_what_other_processes_use_counts_where_the_engine_looks_at_free_memory(engine, counts):
    rules = policy(release(engine))
    alone, shared = (rules.kv_bytes(memory(used_by_others=used)).best for used in (0, 10))
    assert (shared < alone) == counts


@pytest.mark.parametrize(("engine", "blocks"), [("vllm@0.19", 10), ("sglang@0.5", 10), ("trtllm@1.0", 11)])
def test_blocks_are_rounded_down_and_by_tensorrt_up(engine, blocks):
    assert policy(release(engine)).blocks(10.5 * PLAIN.block_bytes, PLAIN.block_bytes) == blocks


@pytest.mark.parametrize("engine", ["vllm@0.19", "sglang@0.5", "trtllm@1.0", "llama.cpp"])
def test_no_memory_is_no_blocks(engine):
    assert policy(release(engine)).blocks(-GIB, PLAIN.block_bytes) == 0


def test_recent_vllm_rounds_a_request_up_to_whole_blocks():
    # vLLM issue 19954: 29,220 blocks and 5,000 tokens a request are 93.35, not 93.50.
    assert round(policy(release("vllm@0.9")).concurrency(PLAIN, 29220, 5000, 2048), 2) == 93.35
    assert round(policy(release("vllm@0.5")).concurrency(PLAIN, 29220, 5000, 2048), 2) == 93.50


def test_tokens_of_groups_are_blocks_of_each_group_and_later_what_the_concurrency_says():
    two = Layout((Group("full", 12), Group("window", 12, 128)), 16, 2**20)
    # gpt-oss-20b on two H100, vLLM 0.19: 323,972 blocks printed as 2,591,776 tokens.
    assert policy(release("vllm@0.19")).tokens(two, 323972, 316.07, 8192) == 2_591_776
    assert policy(release("vllm@0.24")).tokens(two, 323972, 4.3, 1000) == 4300


@pytest.mark.parametrize(
    ("engine", "line"),
    [
        ("vllm@0.6", "# GPU blocks: 100"),
        ("vllm@0.19", "GPU KV cache size: 1,600 tokens"),
        ("vllm@0.19", "Maximum concurrency for 4,096 tokens per request: 0.39x"),
        ("sglang@0.5", "KV Cache is allocated. #tokens: 1600, K size: 0.10 GB, V size: 0.10 GB"),
        ("trtllm@1.0", "[MemUsageChange] Allocated 0.20 GiB for max tokens in paged KV cache (1600)."),
        ("llama.cpp", "KV self size = 512.00 MiB, K: 256.00 MiB, V: 256.00 MiB"),
    ],
)
def test_the_engines_own_lines(engine, line):
    printed = Printed(100, 1600, 0.390625, 4096, PLAIN, 100 * 2 * 2**20)
    assert line in policy(release(engine)).lines(printed)
