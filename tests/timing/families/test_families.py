"""Kernel families: what must hold for every set of parameters, and the limits that a hand can compute."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvsim.errors import InputError
from kvsim.timing.families import device, family
from kvsim.timing.families.interface import power_mean, starts

H100 = device("H100")
NAMES = [
    "linear:bf16",
    "linear:fp8",
    "linear:int4",
    "decode_attention:bf16",
    "decode_attention:fp8",
    "prefill_attention:packed",
    "prefill_attention:by_head",
    "all_reduce:graph",
    "moe:bf16",
    "moe:fp4",
]
SHAPES = {
    "linear": {"m": 64, "n": 4096, "k": 4096},
    "decode_attention": {"sequences": 16, "context": 2048, "heads": 32, "kv_heads": 8, "head_dim": 128, "cold": 1},
    "prefill_attention": {"sequences": 2, "tokens": 512, "cached": 0, "heads": 32, "kv_heads": 8, "head_dim": 128},
    "all_reduce": {"bytes": 1 << 20, "ranks": 4},
    "moe": {"tokens": 64, "hidden": 4096, "intermediate": 1536, "experts": 128, "active": 8, "tensor_ranks": 1,
            "expert_ranks": 1, "drawn": 1},
}  # fmt: skip
WORK = {
    "linear": ("m", "n", "k"),
    "decode_attention": ("sequences", "context"),
    "prefill_attention": ("sequences", "tokens", "cached"),
    "all_reduce": ("bytes",),
    "moe": ("tokens", "hidden"),
}


def shape(name, **changed):
    columns = SHAPES[name.partition(":")[0]] | changed
    return {key: np.array([float(value)]) for key, value in columns.items()}


def seconds(name, values=None, chip=H100, **changed):
    one = family(name)
    return float(one.seconds(starts(one) | (values or {}), shape(name, **changed), chip)[0])


@st.composite
def parameters(draw, name):
    return {
        one.name: float(np.exp(draw(st.floats(np.log(one.low), np.log(one.high))))) for one in family(name).parameters
    }


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_no_kernel_is_free_and_every_time_is_finite(name, data):
    found = seconds(name, data.draw(parameters(name)))
    assert np.isfinite(found)
    assert found > 0


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_twice_the_work_never_takes_less(name, data):
    kind = name.partition(":")[0]
    axis = data.draw(st.sampled_from(WORK[kind]))
    size = data.draw(st.integers(1, 4096)) * 128
    values = data.draw(parameters(name))
    if axis == "m" or (kind == "prefill_attention" and axis == "tokens"):
        size = max(size, 256)  # below, a single row has kernels of its own
    assert seconds(name, values, **{axis: 2 * size}) >= seconds(name, values, **{axis: size}) * (1 - 1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_a_faster_memory_link_and_chip_are_never_slower(name):
    from dataclasses import replace

    fast = replace(
        H100,
        bandwidth_bytes_per_s=2 * H100.bandwidth_bytes_per_s,
        bf16_flops_per_s=2 * H100.bf16_flops_per_s,
        fp8_flops_per_s=2 * H100.fp8_flops_per_s,
        fp4_flops_per_s=2 * H100.fp4_flops_per_s,
        link_bytes_per_s=2 * H100.link_bytes_per_s,
    )
    assert seconds(name, chip=fast) < seconds(name)


def test_one_token_of_a_large_matrix_is_read_at_its_share_of_the_bandwidth():
    values = {"bandwidth_share": 0.8, "fixed_us": 0.01, "blend_power": 12.0}
    assert seconds("linear:bf16", values, m=1, n=65536, k=65536, cold=1) == pytest.approx(
        2 * 65536 * 65536 / (0.8 * 3.35e12), rel=0.01
    )


def test_many_tokens_compute_at_their_share_of_the_peak():
    values = {"compute_share": 0.7, "sustained_loss": 0.001, "fixed_us": 0.01}
    size = 128 * 132 * 8  # whole waves of tiles on 132 units
    assert seconds("linear:bf16", values, m=size, n=16384, k=16384, cold=1) == pytest.approx(
        2 * size * 16384 * 16384 / (0.7 * 989e12), rel=0.05
    )


def test_half_the_bits_are_read_in_half_the_time():
    values = {"fixed_us": 0.01, "blend_power": 12.0, "quantise_ps": 0.001, "one_row_us": 0.01}
    wide, narrow = (seconds(name, values, m=2, n=32768, k=32768, cold=1) for name in ("linear:bf16", "linear:fp8"))
    assert narrow == pytest.approx(wide / 2, rel=0.02)


def test_long_contexts_are_read_at_their_share_of_the_bandwidth():
    values = {"bandwidth_share": 0.9, "fixed_us": 0.5, "chain_ns": 0.001}
    kv_bytes = 2 * 128 * 8 * 64 * 32768 * 2
    found = seconds("decode_attention:bf16", values, sequences=64, context=32768)
    assert found == pytest.approx(kv_bytes / (0.9 * 3.35e12), rel=0.02)


def test_a_micro_benchmark_finds_in_the_cache_what_a_model_does_not():
    warm, cold = (seconds("decode_attention:bf16", sequences=4, context=2048, cold=flag) for flag in (0, 1))
    assert warm < cold


def test_no_context_leaves_the_fixed_costs():
    values = {"fixed_us": 10.0, "block_us": 0.05, "query_us": 0.001, "swap_us": 0.01}
    assert seconds("decode_attention:bf16", values, sequences=1, context=0) == pytest.approx(10e-6, rel=0.01)


def test_prefill_grows_with_the_square_of_a_long_prompt():
    one, two = (seconds("prefill_attention:by_head", tokens=tokens) for tokens in (32768, 65536))
    assert two / one == pytest.approx(4, rel=0.03)


def test_a_cached_prefix_costs_what_new_tokens_are_multiplied_with():
    values = {"causal": 0.5, "ramp_tokens": 0.1, "bandwidth_share": 4.0, "block_us": 0.001, "fixed_us": 0.5}
    alone = seconds("prefill_attention:by_head", values, tokens=4096, sequences=8)
    behind = seconds("prefill_attention:by_head", values, tokens=4096, sequences=8, cached=4096)
    assert behind / alone == pytest.approx((4096 + 2048) / 2048, rel=0.03)


def test_alone_there_is_nothing_to_reduce():
    assert seconds("all_reduce:graph", ranks=1) == 0


def test_a_large_message_crosses_the_link_at_its_share():
    values = {"link_share": 0.7, "crowding_power": 0.01, "one_shot_share": 0.01}
    message = 1 << 32
    found = seconds("all_reduce:graph", values, bytes=message, ranks=8)
    assert found == pytest.approx(2 * 7 / 8 * message / (0.7 * 450e9), rel=0.05)


def test_a_token_reads_its_experts_and_a_large_batch_all():
    nothing_else = dict.fromkeys(("expert_us", "row_ps"), 0.001)
    values = {"bandwidth_share": 1.0, "fixed_us": 1.0, "compute_share": 1.2, "tile_rows": 1.0} | nothing_else
    expert = 3 * 4096 * 1536 * 2 / 3.35e12
    assert seconds("moe:bf16", values, tokens=1) == pytest.approx(8 * expert + 1e-6, rel=0.02)
    assert seconds("moe:bf16", values, tokens=4096, drawn=0) > 128 * expert


def test_expert_parallelism_leaves_a_gpu_its_part_of_the_experts():
    one, eight = (seconds("moe:bf16", tokens=512, expert_ranks=ranks) for ranks in (1, 8))
    assert eight < one / 4


def test_a_blend_is_between_the_larger_and_the_sum():
    first, second = np.array([3.0, 0.0]), np.array([4.0, 0.0])
    assert power_mean(first, second, 1.0) == pytest.approx([7, 0])
    assert power_mean(first, second, 2.0) == pytest.approx([5, 0])


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("a100_sxm", "A100-SXM-80GB"),
        ("A100-80GB (330 W cap)", "A100-SXM-80GB"),
        ("AMD MI300X GPU", "MI300X"),
        ("4090 24GB * 8", "RTX-4090"),
        ("3070 8GB", "RTX-3070"),
        ("a40", "A40"),
    ],
)
def test_a_device_is_found_as_sources_spell_it(spelling, name):
    assert device(spelling).name == name


def test_a_card_nobody_has_a_data_sheet_of_is_refused():
    with pytest.raises(InputError, match="no data sheet is known"):
        device("SambaNova SN40L")


def test_the_output_of_a_linear_layer_is_written_beside_nothing():
    name = "linear:bf16"
    fast, slow = ({"output_share": share} for share in (1.0, 0.5))
    written_s = 2 * 8192 * 8192 / H100.bandwidth_bytes_per_s
    taken = [seconds(name, values, m=8192, n=8192, k=1024) for values in (fast, slow)]
    assert taken[1] - taken[0] == pytest.approx(written_s)


def test_a_single_new_token_has_the_costs_of_a_decode_kernel():
    name = "prefill_attention:by_head"
    costly = {"one_token_us": 30.0, "fixed_us": 10.0}
    assert seconds(name, costly, tokens=1) > seconds(name, {"one_token_us": 10.0}, tokens=1) + 19e-6
    assert seconds(name, costly, tokens=2) == seconds(name, {"one_token_us": 10.0, "fixed_us": 10.0}, tokens=2)


def test_the_same_chip_under_another_name_is_known_as_one():
    assert device("H200").same_chip(H100)
    assert device("B300").same_chip(device("B200"))
    assert not device("H20").same_chip(H100)
