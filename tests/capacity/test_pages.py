"""Tokens per page and pages per row: what vAttention's formula gives, for models with K and V of every kind."""

import pytest

from kvsim.capacity.deployment import Deployment, Given
from kvsim.capacity.overheads.releases import release
from kvsim.capacity.pages import PageRow, is_page, page_row
from kvsim.capacity.planner import plan
from kvsim.capacity.pool import pool_from_card
from kvsim.capacity.span import Span
from kvsim.catalog.footprint import Footprint
from kvsim.catalog.gpus import gpu
from kvsim.catalog.models import model

KIB, MIB = 2**10, 2**20


@pytest.mark.parametrize(
    ("name", "page_bytes", "tokens"),
    [
        # vAttention (ASPLOS'25): page bytes / (KV heads x head dimension x 2 B).
        ("llama-3-8b", 2 * MIB, 1024),
        ("llama-3-8b", 64 * KIB, 32),
        ("yi-6b", 2 * MIB, 2048),
        ("yi-6b", 64 * KIB, 64),
        ("llama-3-8b", 128 * KIB, 64),
        ("llama-2-7b", 2 * MIB, 256),
    ],
)
def test_the_published_tokens_per_page(name, page_bytes, tokens):
    assert page_row(Footprint(model(name)), page_bytes) == PageRow(tokens, 2 * 32, page_bytes)


def test_ranks_share_the_kv_heads_so_that_a_page_holds_more_tokens():
    assert page_row(Footprint(model("llama-3-8b"), tensor_parallel=2), 2 * MIB) == PageRow(2048, 64, 2 * MIB)
    # 8 KV heads on 16 ranks: one on each, held twice.
    assert page_row(Footprint(model("llama-3-8b"), tensor_parallel=16), 2 * MIB).tokens == 8192


def test_a_smaller_number_format_of_the_kv_puts_more_tokens_into_a_page():
    assert page_row(Footprint(model("llama-3-8b"), kv_dtype="fp8"), 2 * MIB).tokens == 2048


def test_the_rest_of_a_page_that_holds_no_whole_token_lies_outside_the_pool():
    # OPT-13B: 40 heads x 128 x 2 B = 10,240 B; 2 MiB hold 204.8 of them.
    row = page_row(Footprint(model("opt-13b")), 2 * MIB)
    assert (row.tokens, row.pages, row.bytes) == (204, 80, 160 * MIB)


def test_a_latent_is_one_tensor_a_layer():
    # DeepSeek-V3: 512 + 64 elements, 1,152 B a token and layer, 61 layers.
    assert page_row(Footprint(model("deepseek-v3")), 2 * MIB) == PageRow(1820, 61, 2 * MIB)


def test_window_layers_count_like_the_others():
    shape = model("gemma-3-27b")
    assert page_row(Footprint(shape), 2 * MIB).pages == 2 * shape.layers


@pytest.mark.parametrize("name", ["deepseek-v3.2", "gemma-4-31b", "mimo-v2-flash"])
def test_a_model_whose_tensors_cross_a_page_at_different_tokens_is_refused(name):
    with pytest.raises(ValueError, match=f"{name} keeps KV tensors of different bytes per token .* use `paged`"):
        page_row(Footprint(model(name)), 2 * MIB)


def test_a_page_that_holds_no_token_is_refused():
    # BLOOM-176B: 112 heads x 128 x 4 B in fp32 = 57,344 B; on one rank a page of 64 KiB holds one token.
    wide = Footprint(model("bloom-176b"), kv_dtype="fp32")
    assert page_row(wide, 64 * KIB).tokens == 1


@pytest.mark.parametrize("page_bytes", [0, 4 * KIB, 65 * KIB, 2 * 10**6, 4 * MIB, -64 * KIB])
def test_only_what_a_gpu_maps_is_a_page(page_bytes):
    assert not is_page(page_bytes)
    with pytest.raises(ValueError, match=f"page_bytes is {page_bytes}; a page is a multiple of 64 KiB"):
        page_row(Footprint(model("llama-3-8b")), page_bytes)


def test_a_card_is_filled_with_whole_rows():
    footprint, card = Footprint(model("opt-13b")), gpu("A100-40GB")
    row = page_row(footprint, 2 * MIB)
    total, nothing = Span.exactly(card.memory_bytes), Span.exactly(0)
    asked = Deployment(
        model=footprint.model,
        engine=release("vllm@0.33"),
        total=total,
        gpu=card,
        utilization=1,
        given=Given(activation=nothing, non_torch=nothing, cuda_graphs=nothing),
    )
    pool = pool_from_card(plan(asked), block_size=row.tokens, block_bytes=row.bytes)
    left = card.memory_bytes - footprint.weight_bytes
    assert pool.slots == left // (160 * MIB) * 204
