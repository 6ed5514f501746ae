"""From a card to a pool: the memory that is left for KV, by arithmetic."""

import pytest

from kvsim.capacity.pool import Overheads, pool_from_card
from kvsim.catalog.footprint import Footprint
from kvsim.catalog.gpus import gpu
from kvsim.catalog.models import model
from kvsim.errors import DoesNotFitError

GIB = 2**30
NONE = Overheads(activation_bytes=0, non_torch_bytes=0, cuda_graphs_bytes=0)

# Llama-3.1-8B in bf16 loads 16,059,990,016 B and 33,554,432 B of rotary tables, and keeps 131,072 B a token; an RTX
# 4090 gives 25,250,627,584 B.
LLAMA = Footprint(model("llama-3.1-8b"))
CARD = gpu("RTX 4090")


@pytest.mark.parametrize(
    ("utilization", "overheads", "blocks"),
    [
        # 0.9 x 25,250,627,584 - 16,093,544,448 = 6,632,020,378 B; a block takes 2,097,152 B.
        (0.9, NONE, 3162),
        # less 0.90 GiB of activations and 0.25 GiB besides: 5,397,217,281 B.
        (0.9, Overheads(activation_bytes=966_367_641, non_torch_bytes=GIB // 4, cuda_graphs_bytes=0), 2573),
        # 0.92 x ... = 7,137,032,930 B, less those and the graphs: 4,925,124,773 B.
        (0.92, Overheads(activation_bytes=966_367_641, non_torch_bytes=GIB // 4, cuda_graphs_bytes=977_105_060), 2348),
        # the whole card: 9,157,083,136 B
        (1.0, NONE, 4366),
    ],
)  # fmt: skip
def test_the_pool_is_the_share_of_the_card_less_weights_and_overheads_in_whole_blocks(utilization, overheads, blocks):
    pool = pool_from_card(LLAMA, CARD, utilization=utilization, overheads=overheads, block_size=16)
    assert pool.slots == blocks * 16


@pytest.mark.parametrize(("block_size", "slots"), [(1, 50_598), (16, 50_592), (128, 50_560), (256, 50_432)])
def test_what_is_left_is_rounded_down_to_whole_blocks(block_size, slots):
    # 6,632,020,378 B hold 50,598 tokens.
    pool = pool_from_card(LLAMA, CARD, utilization=0.9, overheads=NONE, block_size=block_size)
    assert pool.slots == slots


def test_each_of_two_ranks_holds_half_the_weights_all_rotary_tables_and_half_of_every_token():
    halves = Footprint(model("llama-3.1-8b"), tensor_parallel=2)
    pool = pool_from_card(halves, CARD, utilization=0.9, overheads=NONE, block_size=1)
    assert pool.slots == (22_725_564_826 - 8_063_549_440) // 65_536


def test_eight_bit_kv_holds_twice_the_tokens():
    small = Footprint(model("llama-3.1-8b"), kv_dtype="fp8")
    pools = [pool_from_card(f, CARD, utilization=0.9, overheads=NONE, block_size=1) for f in (LLAMA, small)]
    assert pools[1].slots in (2 * pools[0].slots, 2 * pools[0].slots + 1)


def test_the_pool_says_where_it_comes_from():
    overheads = Overheads(activation_bytes=GIB, non_torch_bytes=GIB // 2, cuda_graphs_bytes=0)
    pool = pool_from_card(LLAMA, CARD, utilization=0.9, overheads=overheads, block_size=16)
    for part in ("from the card", "23.52 GiB x 0.9", "21.16 GiB", "weights 14.99 GiB", "overheads 1.50 GiB"):
        assert part in pool.provenance


def test_a_model_that_does_not_fit_says_so_with_the_breakdown_and_exit_code_3():
    large = Footprint(model("llama-3.1-70b"))
    with pytest.raises(DoesNotFitError) as error:
        pool_from_card(large, CARD, utilization=0.9, overheads=NONE, block_size=16)
    assert error.value.exit_code == 3
    for part in ("llama-3.1-70b does not fit", "RTX-4090", "23.52 GiB x 0.9", "weights 131.45 GiB", "16 tokens"):
        assert part in str(error.value)


def test_not_even_one_block_is_left_only_just():
    room = 22_725_564_826 - 16_093_544_448
    fits = Overheads(activation_bytes=room - 16 * 131_072, non_torch_bytes=0, cuda_graphs_bytes=0)
    over = Overheads(activation_bytes=room - 16 * 131_072 + 1, non_torch_bytes=0, cuda_graphs_bytes=0)
    assert pool_from_card(LLAMA, CARD, utilization=0.9, overheads=fits, block_size=16).slots == 16
    with pytest.raises(DoesNotFitError):
        pool_from_card(LLAMA, CARD, utilization=0.9, overheads=over, block_size=16)


@pytest.mark.parametrize("utilization", [0, -0.1, 1.01, float("nan")])
def test_the_utilization_is_a_share_of_the_card(utilization):
    with pytest.raises(ValueError, match="utilization is"):
        pool_from_card(LLAMA, CARD, utilization=utilization, overheads=NONE, block_size=16)
