"""From a planned start to the pool of a run: the memory that is left for KV, by arithmetic."""

from typing import Any

import pytest

from kvsim.capacity.deployment import Deployment, Given
from kvsim.capacity.overheads.releases import release
from kvsim.capacity.plan import Plan
from kvsim.capacity.planner import plan
from kvsim.capacity.pool import pool_from_card
from kvsim.capacity.span import Span
from kvsim.catalog.gpus import gpu
from kvsim.catalog.models import model
from kvsim.errors import DoesNotFitError, InputError

GIB = 2**30

# Llama-3.1-8B in bf16 loads 16,059,990,016 B and 33,554,432 B of rotary tables, and keeps 131,072 B a token; an RTX
# 4090 gives 25,250,627,584 B.
CARD = gpu("RTX 4090")


def start(
    *,
    name: str = "llama-3.1-8b",
    activation: int = 0,
    non_torch: int = 0,
    graphs: int = 0,
    utilization: float = 0.9,
    **settings: Any,
) -> Plan:
    given = Given(
        activation=Span.exactly(activation), non_torch=Span.exactly(non_torch), cuda_graphs=Span.exactly(graphs)
    )
    asked: dict[str, Any] = {
        "model": model(name), "engine": release("vllm@0.33"), "total": Span.exactly(CARD.memory_bytes), "gpu": CARD,
        "utilization": utilization, "given": given,
    }  # fmt: skip
    return plan(Deployment(**asked | settings))


@pytest.mark.parametrize(
    ("utilization", "overheads", "blocks"),
    [
        # 0.9 x 25,250,627,584 - 16,093,544,448 = 6,632,020,378 B; a block takes 2,097,152 B.
        (0.9, {}, 3162),
        # less 0.90 GiB of activations and 0.25 GiB besides: 5,397,217,281 B.
        (0.9, {"activation": 966_367_641, "non_torch": GIB // 4}, 2573),
        # 0.92 x ... = 7,137,032,930 B, less those and the graphs: 4,925,124,773 B.
        (0.92, {"activation": 966_367_641, "non_torch": GIB // 4, "graphs": 977_105_060}, 2348),
        # the whole card: 9,157,083,136 B
        (1.0, {}, 4366),
    ],
)
def test_the_pool_is_the_share_of_the_card_less_weights_and_overheads_in_whole_blocks(utilization, overheads, blocks):
    assert pool_from_card(start(utilization=utilization, **overheads), block_size=16).slots == blocks * 16


def test_graphs_lie_outside_the_share_where_the_release_does_not_count_them():
    """vLLM subtracts them from 0.21 on."""
    pool = pool_from_card(start(engine=release("vllm@0.19"), graphs=977_105_060), block_size=16)
    assert pool.slots == 3162 * 16


@pytest.mark.parametrize(("block_size", "slots"), [(1, 50_598), (16, 50_592), (128, 50_560), (256, 50_432)])
def test_what_is_left_is_rounded_down_to_whole_blocks(block_size, slots):
    # 6,632,020,378 B hold 50,598 tokens.
    assert pool_from_card(start(), block_size=block_size).slots == slots


def test_each_of_two_ranks_holds_half_the_weights_all_rotary_tables_and_half_of_every_token():
    pool = pool_from_card(start(tensor_parallel=2), block_size=1)
    assert pool.slots == (22_725_564_826 - 8_063_549_440) // 65_536


def test_eight_bit_kv_holds_twice_the_tokens():
    pools = [pool_from_card(start(kv_dtype=dtype), block_size=1) for dtype in ("bf16", "fp8")]
    assert pools[1].slots in (2 * pools[0].slots, 2 * pools[0].slots + 1)


def test_the_pool_says_where_it_comes_from():
    pool = pool_from_card(start(activation=GIB, non_torch=GIB // 2), block_size=16)
    for part in ("from the card", "23.52 GiB x 0.9", "21.16 GiB", "weights 14.99 GiB", "overheads 1.50 GiB"):
        assert part in pool.provenance


def test_a_model_that_does_not_fit_says_so_with_the_breakdown_and_exit_code_3():
    with pytest.raises(DoesNotFitError) as error:
        pool_from_card(start(name="llama-3.1-70b"), block_size=16)
    assert error.value.exit_code == 3
    for part in ("llama-3.1-70b does not fit", "RTX-4090", "23.52 GiB x 0.9", "weights 131.45 GiB", "16 tokens"):
        assert part in str(error.value)


def test_the_remedy_is_the_fewest_ranks_that_leave_room_for_a_block():
    with pytest.raises(DoesNotFitError, match="tensor_parallel: 8 would fit"):
        pool_from_card(start(name="llama-3.1-70b"), block_size=16)
    assert pool_from_card(start(name="llama-3.1-70b", tensor_parallel=8), block_size=16).slots >= 16
    with pytest.raises(DoesNotFitError, match="No tensor_parallel fits"):
        pool_from_card(start(name="llama-3.1-70b", activation=30 * GIB), block_size=16)


def test_not_even_one_block_is_left_only_just():
    room = 22_725_564_826 - 16_093_544_448
    assert pool_from_card(start(activation=room - 16 * 131_072), block_size=16).slots == 16
    with pytest.raises(DoesNotFitError):
        pool_from_card(start(activation=room - 16 * 131_072 + 1), block_size=16)


@pytest.mark.parametrize("utilization", [0, -0.1, 1.01, float("nan")])
def test_the_utilization_is_a_share_of_the_card(utilization):
    with pytest.raises(InputError, match="utilization is"):
        start(utilization=utilization)
