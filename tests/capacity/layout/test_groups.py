"""Layer groups: what vLLM's equal groups cost a block, and what a request takes of them."""

import pytest

from kvsim.capacity.deployment import Deployment
from kvsim.capacity.layout.groups import layout
from kvsim.capacity.overheads.releases import release
from kvsim.capacity.span import Span
from kvsim.capacity.weights.loaded import Stage
from kvsim.catalog.gpus import gpu
from kvsim.catalog.models import model

H100 = gpu("H100")


def laid_out(name, engine="vllm@0.19", **settings):
    shape = model(name)
    asked = Deployment(model=shape, engine=release(engine), gpu=H100, total=Span.exactly(H100.memory_bytes), **settings)
    return layout(asked, Stage(0, shape.layers, 0))


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("name", "ranks", "groups", "layers", "block_bytes"),
    [
        # Start-up logs of vLLM 0.19 (llm-d-incubation/llm-d-planner pull 205): KV bytes a token of one group x 16.
        ("gemma-2-27b", 1, 2, 23, 188416 * 16),
        ("gemma-3-12b", 1, 6, 8, 65536 * 16),
        ("gpt-oss-20b", 1, 2, 12, 24576 * 16),
        ("gpt-oss-20b", 2, 2, 12, 12288 * 16),
        ("llama-4-scout", 4, 4, 12, 12288 * 16),
        ("llama-3.1-8b", 1, 1, 32, 131072 * 16),
    ],
)
def test_layers_of_two_kinds_are_dealt_into_groups_of_equal_size(name, ranks, groups, layers, block_bytes):
    shape = laid_out(name, tensor_parallel=ranks)
    assert len(shape.groups) == groups
    assert {group.layers for group in shape.groups} == {layers}
    assert shape.block_bytes == block_bytes


def test_a_window_is_charged_for_a_whole_step_beyond_itself():
    shape = laid_out("gpt-oss-20b")
    # 8,192 tokens: 512 blocks in the full group, ceil(min(127 + 8192, 8192) / 16) + 1 in the window.
    assert shape.request_blocks(8192, 8192) == 512 + 513
    assert shape.request_blocks(8192, 1024) == 512 + 72 + 1


def test_chunked_attention_is_charged_without_the_block_more():
    assert laid_out("llama-4-scout", tensor_parallel=4).request_blocks(8192, 8192) == 4 * 512


def test_older_releases_and_sglang_keep_every_token_in_every_layer():
    for engine in ("vllm@0.8", "sglang@0.4"):
        shape = laid_out("gemma-3-12b", engine)
        assert [group.layers for group in shape.groups] == [48]
        assert shape.block_bytes == 393216 * shape.block


def test_layers_whose_pages_differ_are_charged_at_the_largest():
    # gemma-4-31b, 983,040 B a token worked out in alvarobartt/hf-mem pull 61.
    shape = laid_out("gemma-4-31b")
    assert shape.block_bytes == 983_040 * 16
    assert len(shape.groups) == 1


@pytest.mark.parametrize("ranks", [1, 8, 16])
def test_a_latent_is_not_divided_by_the_ranks_and_its_kernel_sets_the_block(ranks):
    shape = laid_out("deepseek-v3", tensor_parallel=ranks)
    assert shape.block == 64
    assert shape.block_bytes == 64 * 70_272
    assert "latent-attention kernel of Hopper" in shape.forced


@pytest.mark.parametrize(("ranks", "per_token"), [(1, 131072), (2, 65536), (8, 16384), (32, 16384)])
def test_kv_heads_on_a_rank_are_one_at_least(ranks, per_token):
    assert laid_out("llama-3.1-8b", tensor_parallel=ranks).block_bytes == 16 * per_token


def test_ranks_that_hold_attention_whole_keep_all_heads():
    split = laid_out("llama-3.1-8b", tensor_parallel=8, data_parallel=8, attention_data_parallel=True)
    assert split.block_bytes == 16 * 131072


@pytest.mark.oracle
def test_a_state_forces_the_block_size_and_costs_the_same_at_any_length():
    # Qwen3.6-35B-A3B with fp8 KV, vLLM 0.24 (noonghunna/club-3090 issue 612): 4.33 requests of 131,072 tokens in 5.98
    # GiB with two speculative tokens are 585 blocks of 1,072 tokens over 135.
    shape = laid_out("qwen3.5-35b-a3b", "vllm@0.24", kv_dtype="fp8", draft_tokens=2)
    assert shape.block == 1072
    assert shape.request_blocks(131072, 2048) == 135
    assert round(585 / 135, 2) == 4.33
    assert shape.request_blocks(1, 2048) == 1 + 3 * 4
    assert "must hold the state" in shape.forced


def test_the_longest_request_is_the_last_that_fits():
    shape = laid_out("gemma-2-27b")
    longest = shape.longest(700, 8192, 100_000)
    assert shape.request_blocks(longest, 8192) <= 700 < shape.request_blocks(longest + 1, 8192)
    assert shape.longest(0, 8192, 100) == 0


def test_a_draft_model_lies_under_the_same_block_ids():
    alone = laid_out("llama-3.1-8b").block_bytes
    assert laid_out("llama-3.1-8b", draft=model("llama-3.2-1b")).block_bytes == alone + 16 * 32768


def test_a_model_that_only_slides_is_one_group_with_a_window():
    shape = laid_out("mistral-7b-v0.1")
    assert [(group.kind, group.window) for group in shape.groups] == [("window", 4096)]
