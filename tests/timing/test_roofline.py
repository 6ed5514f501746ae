"""`roofline`: step times that a hand can compute from the data sheet, and what must hold for every model and card."""

import json
from dataclasses import fields, replace
from functools import cache
from importlib.resources import files
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvsim.catalog.footprint import Footprint
from kvsim.catalog.gpus import gpu
from kvsim.catalog.models import model
from kvsim.request import Sequence
from kvsim.step import Chunk
from kvsim.timing.roofline import RooflineParameters, RooflineTiming, roofline_parameters
from tests.batches import step_of

# Llama-3.1-8B: 32 layers, hidden 4,096, MLP 14,336, 32 heads and 8 KV heads of 128, vocabulary 128,256, not tied.
LINEAR = 32 * (2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336)
HEAD = 128_256 * 4096
# Of the 16.06 GB of weights a step reads all but the input embedding, of which it looks up a few rows.
WEIGHT_BYTES = 2 * (LINEAR + HEAD)
KV_BYTES = 2 * 32 * 8 * 128 * 2
PAIR_FLOPS = 32 * 32 * 2 * (128 + 128)
# H100 SXM: 3.35 TB/s, 989 TFLOP/s, NVLink 900 GB/s both ways. Efficiencies 0.8, 0.7 and 0.6.
READ = 3.35e12 * 0.8
LINEAR_RATE, PREFILL_RATE = 989e12 * 0.7, 989e12 * 0.6
# 90 us a step, and a layer's four kernels of 6 us with its attention of 15 us.
FIXED = 90e-6 + 32 * (4 * 6e-6 + 15e-6)
SEQUENCE = 17e-6


@cache
def timing(name: str = "llama-3.1-8b", card: str = "H100", ranks: int = 1, **dtypes: str) -> RooflineTiming:
    return RooflineTiming(Footprint(model(name), tensor_parallel=ranks, **dtypes), gpu(card))


def chunk(tokens: int, written: int = 0) -> Chunk:
    return Chunk(Sequence(0, tokens + written, None), tokens, written)


def seconds(time_ps: int) -> float:
    return time_ps / 1e12


def about(value: float) -> object:
    """Equal but for the rounding to picoseconds."""
    return pytest.approx(value, rel=1e-8)


def test_one_decoding_request_is_bound_by_reading_the_weights():
    base, slope, _ = timing().decode(1)
    assert WEIGHT_BYTES == 15_009_316_864
    assert seconds(base) == about(WEIGHT_BYTES / READ + FIXED + SEQUENCE)
    assert seconds(base) == pytest.approx(6.96e-3, rel=0.01)  # 5.60 ms of weights, 1.36 ms fixed
    assert slope == round(1e12 * KV_BYTES / READ) == 48_907


def test_decode_attention_reads_the_context():
    plain, long = (timing().step_ps(step_of(8, context, [], 0)) for context in (0, 8 * 4096))
    assert seconds(long - plain) == pytest.approx(8 * 4096 * KV_BYTES / READ, rel=1e-4)


def test_a_large_prefill_is_bound_by_computing():
    flops = 2 * (LINEAR * 2048 + HEAD)
    pairs = 2048 * 2049 / 2  # the first token meets itself, the last one all
    expected = flops / LINEAR_RATE + pairs * PAIR_FLOPS / PREFILL_RATE + FIXED + SEQUENCE
    found = seconds(timing().step_ps(step_of(0, 0, [chunk(2048)], 0)))
    assert found == about(expected)
    assert found == pytest.approx(44.5e-3, rel=0.01)
    assert flops / LINEAR_RATE > 6 * WEIGHT_BYTES / READ


def test_a_later_chunk_also_meets_what_was_written_before():
    first, later = (timing().step_ps(step_of(0, 0, [chunk(512, written)], 0)) for written in (0, 30_000))
    more = 512 * 30_000 * PAIR_FLOPS / PREFILL_RATE
    assert seconds(later - first) == pytest.approx(more, rel=1e-6)


def test_a_single_token_behind_a_long_prefix_reads_it():
    one, behind = (timing().step_ps(step_of(0, 0, [chunk(1, written)], 0)) for written in (0, 100_000))
    assert seconds(behind - one) == pytest.approx(100_000 * KV_BYTES / READ, rel=1e-6)


def test_at_long_context_attention_passes_the_linear_layers():
    linear = 2 * (LINEAR * 2048 + HEAD) / LINEAR_RATE
    attention = seconds(timing().step_ps(step_of(0, 0, [chunk(2048, 100_000)], 0))) - linear - FIXED - SEQUENCE
    assert attention > 2 * linear


def test_prefill_and_decode_in_one_step_share_the_linear_layers():
    mixed = timing().step_ps(step_of(32, 32 * 500, [chunk(1000)], 0))
    apart = timing().step_ps(step_of(32, 32 * 500, [], 0)) + timing().step_ps(step_of(0, 0, [chunk(1000)], 0))
    flops = 2 * (LINEAR * 1032 + HEAD * 33)
    attention = 32 * 500 * KV_BYTES / READ + 1000 * 1001 / 2 * PAIR_FLOPS / PREFILL_RATE
    assert seconds(mixed) == pytest.approx(flops / LINEAR_RATE + attention + FIXED + 33 * SEQUENCE, rel=1e-6)
    assert mixed < apart


def test_a_copied_slot_is_read_and_written_once():
    with_copy, without = (timing().step_ps(step_of(4, 400, [], slots)) for slots in (10_000, 0))
    assert seconds(with_copy - without) == pytest.approx(10_000 * 2 * KV_BYTES / READ, rel=1e-4)


def test_two_ranks_halve_weights_and_kv_and_pay_two_all_reduces_a_layer():
    base, slope, _ = timing(ranks=2).decode(16)
    link = 450e9 * 0.7  # one way
    ring = 2 * (1 / 2) * (2 * 16 * 4096) / link
    collectives = 2 * 32 * (15e-6 + ring)
    assert seconds(base) == about(WEIGHT_BYTES / 2 / READ + FIXED + 16 * SEQUENCE + collectives)
    assert slope == round(1e12 * KV_BYTES / 2 / READ)


def test_more_ranks_are_faster_but_less_than_in_proportion():
    times = [timing("llama-3.1-70b", ranks=ranks).decode(16)[0] for ranks in (1, 2, 4, 8)]
    assert times == sorted(times, reverse=True)
    for one, two in pairwise(times):
        assert one / 2 < two < one


def test_cards_without_a_link_of_their_own_talk_over_the_hosts():
    assert gpu("RTX 4090").gpu_link_bytes_per_s == 0
    alone, pair = (timing(card="RTX 4090", ranks=ranks).step_ps(step_of(0, 0, [chunk(2048)], 0)) for ranks in (1, 2))
    ring = 2 * (1 / 2) * (2 * 2048 * 4096) / (32e9 * 0.7)
    halves = (2 * (LINEAR * 2048 + HEAD) / (165.2e12 * 0.7) + 2048 * 2049 / 2 * PAIR_FLOPS / (165.2e12 * 0.6)) / 2
    assert seconds(alone - pair) == pytest.approx(halves - 2 * 32 * (15e-6 + ring), rel=1e-6)


# Mixtral-8x7B: 8 experts a layer of which a token passes 2; an expert is 3 x 4,096 x 14,336 in each of 32 layers.
EXPERTS = 8 * 32 * 3 * 4096 * 14336
REST = (
    32 * (2 * 4096 * 4096 + 2 * 4096 * 1024 + 8 * 4096) + 32_000 * 4096
)  # with the LM head, without the input embedding


@pytest.mark.parametrize(("tokens", "touched"), [(1, 1 / 4), (2, 7 / 16), (256, 1.0)])
def test_a_mixture_of_experts_reads_the_experts_that_its_batch_touches(tokens, touched):
    # Drawn evenly, each token leaves an expert untouched with probability 6/8.
    base, _, _ = timing("mixtral-8x7b").decode(tokens)
    expected = 2 * (REST + touched * EXPERTS) / READ + FIXED + tokens * SEQUENCE
    assert seconds(base) == about(expected)


def test_eight_bit_weights_are_read_in_half_the_time_and_computed_at_the_eight_bit_rate():
    whole, half = (timing(weights_dtype=dtype) for dtype in ("bf16", "fp8"))
    fewer = LINEAR / READ  # the tables stay at 16 bits
    assert seconds(whole.decode(1)[0] - half.decode(1)[0]) == about(fewer)
    quick = seconds(whole.step_ps(step_of(0, 0, [chunk(2048)], 0)) - half.step_ps(step_of(0, 0, [chunk(2048)], 0)))
    flops = 2 * (LINEAR * 2048 + HEAD)
    assert quick == about(flops / LINEAR_RATE - flops / (1978e12 * 0.7))


def test_eight_bit_kv_halves_the_slope():
    assert timing(kv_dtype="fp8").decode(1)[1] == pytest.approx(timing().decode(1)[1] / 2, abs=1)


TIMINGS = [
    ("llama-3.1-8b", "H100", 1),
    ("llama-3.1-70b", "H100", 4),
    ("mixtral-8x7b", "A100", 2),
    ("deepseek-v3", "H200", 8),
]
batches = st.tuples(
    st.integers(1, 300),
    st.integers(0, 200_000),
    st.lists(st.tuples(st.integers(1, 3000), st.integers(0, 50_000)), max_size=3),
    st.integers(0, 5000),
)


@pytest.mark.parametrize("which", TIMINGS, ids=[f"{name} on {ranks} {card}" for name, card, ranks in TIMINGS])
@given(batches)
def test_a_step_that_only_decodes_is_a_base_and_a_slope_in_whole_picoseconds(which, batch):
    decodes, context, _, _ = batch
    base, slope, _ = timing(*which).decode(decodes)
    assert isinstance(base, int)
    assert isinstance(slope, int)
    assert min(base, slope) > 0
    assert timing(*which).step_ps(step_of(decodes, context, [], 0)) == base + slope * context


@pytest.mark.parametrize("which", TIMINGS, ids=[f"{name} on {ranks} {card}" for name, card, ranks in TIMINGS])
@given(batches)
def test_more_of_anything_takes_no_less_time(which, batch):
    decodes, context, chunks, copied = batch
    times = timing(*which)

    def step(*batch):
        return times.step_ps(step_of(*batch))

    made = [chunk(*one) for one in chunks]
    least = step(decodes, context, made, copied)
    assert isinstance(least, int)
    assert step(decodes + 1, context, made, copied) >= least
    assert step(decodes, context + 1, made, copied) > least
    assert step(decodes, context, made, copied + 1) > least
    assert step(decodes, context, [*made, chunk(1)], copied) > least
    if chunks:
        tokens, written = chunks[0]
        assert step(decodes, context, [chunk(tokens + 1, written), *made[1:]], copied) > least
        assert step(decodes, context, [chunk(tokens, written + 1), *made[1:]], copied) > least


def test_a_faster_card_takes_less_time():
    for batch in ((1, 500, [], 0), (64, 64_000, [chunk(512)], 0)):
        times = [timing(card=card).step_ps(step_of(*batch)) for card in ("RTX 4090", "A100", "H100", "H200")]
        assert times == sorted(times, reverse=True)
        assert times[0] > times[-1]


def test_the_same_batch_always_takes_the_same_time():
    one, two = timing(), RooflineTiming(Footprint(model("llama-3.1-8b")), gpu("H100"))
    batch = (7, 4321, [chunk(100, 50)], 3)
    two.decode(250)
    assert one.step_ps(step_of(*batch)) == two.step_ps(step_of(*batch)) == one.step_ps(step_of(*batch))


def test_its_provenance_is_the_data_sheet():
    assert timing().provenance == "datasheet"


def test_every_parameter_is_stated_with_its_unit_and_source():
    stated = json.loads(files("kvsim.timing").joinpath("data/roofline.json").read_text("utf-8"))
    assert set(stated) == {field.name for field in fields(RooflineParameters)}
    for name, entry in stated.items():
        assert set(entry) == {"value", "unit", "source"}, name
        assert all(entry.values()), name


def test_overrides_replace_what_is_stated():
    slower = RooflineTiming(
        Footprint(model("llama-3.1-8b")), gpu("H100"), roofline_parameters({"weights_bandwidth_efficiency": 0.4})
    )
    assert seconds(slower.decode(1)[0] - timing().decode(1)[0]) == about(WEIGHT_BYTES / READ)
    assert roofline_parameters() == roofline_parameters({})


@pytest.mark.parametrize("value", [0, -0.5, 9e-7, 1.01, float("nan"), float("inf")])
def test_an_efficiency_is_a_share(value):
    with pytest.raises(ValueError, match=r"linear_compute_efficiency is .*; it must be a share from 0.000001 to 1"):
        roofline_parameters({"linear_compute_efficiency": value})


@pytest.mark.parametrize("value", [-1e-6, 1, float("nan"), float("inf")])
def test_an_overhead_is_a_duration_below_a_second(value):
    with pytest.raises(ValueError, match=r"step_overhead_s is .*; it must be a duration in seconds"):
        roofline_parameters({"step_overhead_s": value})


def test_an_overhead_may_be_nothing():
    assert roofline_parameters({"step_overhead_s": 0}).step_overhead_s == 0


def test_an_unknown_parameter_is_named_with_those_there_are():
    with pytest.raises(ValueError, match=r"speed is no parameter of the roofline; it has allreduce_latency_s, "):
        roofline_parameters({"speed": 1})


@pytest.mark.parametrize(("block_size", "slower"), [(1, 4.7), (16, 1.23125), (256, 1.014453125)])
def test_a_block_table_makes_decode_attention_slower_by_a_lookup_a_block(block_size, slower):
    """3.7 token reads a block: the 20-26 % that PagedAttention s7.1 reports for blocks of 16."""
    paged = RooflineTiming(Footprint(model("llama-3.1-8b")), gpu("H100"), block_size=block_size)
    assert paged.decode(8)[1] == pytest.approx(timing().decode(8)[1] * slower, rel=1e-4)
    assert paged.decode(8)[0] == timing().decode(8)[0]


@pytest.mark.parametrize("value", [-1, 1_000_001, float("nan"), float("inf")])
def test_a_block_lookup_is_a_number_of_tokens(value):
    with pytest.raises(
        ValueError, match=r"block_lookup_tokens is .*; it must be a number of tokens, from 0 to 1,000,000"
    ):
        roofline_parameters({"block_lookup_tokens": value})


def test_a_mixture_none_of_whose_layers_has_experts_is_as_fast_as_a_dense_model():
    """As a config.json makes it whose first dense layers are all of them."""
    mixture = replace(
        model("llama-3.1-8b"), kind="moe", experts=8, experts_active=2, moe_intermediate=14336, moe_layers=0
    )
    assert RooflineTiming(Footprint(mixture), gpu("H100")).decode(4) == timing().decode(4)
