"""Weights: the count agrees with what is published, and the bytes with what real engines logged."""

import pytest

from kvsim.catalog.footprint import Footprint
from kvsim.catalog.models import Model, model, models
from kvsim.catalog.weights import count, dtype_bits, weight_bytes
from kvsim.errors import InputError

COUNTED = [m for m in models() if m.parameters_from == "architecture" and m.params_total_b]


@pytest.mark.oracle
@pytest.mark.parametrize("listed", COUNTED, ids=lambda m: m.name)
def test_counted_parameters_are_within_1_2_percent_of_the_published(listed: Model) -> None:
    assert count(listed).total == pytest.approx(listed.params_total_b * 1e9, rel=0.012)


def test_weights_that_nobody_published_and_no_field_describes_are_refused() -> None:
    assert [m.name for m in models() if not m.weights_known] == ["qwen3.5-4b", "kimi-k3"]
    with pytest.raises(InputError, match="model kimi-k3: params_total_b is not known"):
        count(model("kimi-k3"))
    assert Footprint(model("kimi-k3")).kv_bytes_per_token == 27_648


@pytest.mark.parametrize("listed", [m for m in models() if m.weights_known], ids=lambda m: m.name)
def test_a_token_passes_no_more_than_all_parameters(listed: Model) -> None:
    weights = count(listed)
    assert 0 < weights.linear < weights.active <= weights.total
    assert weights.lm_head == listed.vocab * listed.hidden
    assert (weights.expert > 0) == (listed.moe_layers > 0)
    tables = weights.embedding + (0 if weights.tied else weights.lm_head)
    assert weights.linear + tables == weights.active


def test_llama_3_1_8b_counted_by_hand() -> None:
    weights = count(model("llama-3.1-8b"))
    attention = 4096 * (4096 + 1024 + 1024) + 4096 * 4096
    mlp = 3 * 4096 * 14_336
    assert weights.linear == 32 * (attention + mlp) == 6_979_321_856
    assert weights.embedding == weights.lm_head == 128_256 * 4096
    assert weights.total == weights.active == 6_979_321_856 + 2 * 128_256 * 4096


def test_a_tied_table_counts_once() -> None:
    weights = count(model("qwen2.5-1.5b"))
    assert weights.tied
    assert weights.total == weights.linear + 151_936 * 1536


def test_a_mixture_of_experts_counted_by_hand() -> None:
    weights = count(model("mixtral-8x7b"))
    assert weights.expert == 32 * 3 * 4096 * 14_336
    assert weights.total - weights.active == 6 * weights.expert
    footprint = Footprint(model("mixtral-8x7b"))
    assert (footprint.experts, footprint.experts_active) == (8, 2)
    assert (footprint.parameters, footprint.active_parameters) == (weights.total, weights.active)
    assert (footprint.linear_parameters, footprint.expert_parameters) == (weights.linear, weights.expert)
    assert footprint.lm_head_parameters == weights.lm_head


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("name", "ranks", "dtype", "gib"),
    [  # "Model loading took" of vLLM 0.6-0.19, as read in public issues and pull requests (capacity_logs.csv)
        ("Meta-Llama-3-8B", 1, "bf16", 14.96),
        ("Llama-3.1-8B-Instruct", 1, "bf16", 14.99),
        ("Llama-3.1-8B-Instruct", 2, "bf16", 7.51),
        ("Llama-3.1-8B-Instruct", 4, "bf16", 3.77),
        ("Llama-3.1-8B-Instruct", 1, "fp32", 29.98),
        ("Llama-3.1-8B-Instruct", 1, "fp8", 8.49),
        ("Qwen2.5-7B-Instruct", 1, "int8", 8.14),
        ("Qwen3-30B-A3B", 1, "bf16", 56.88),
        ("gemma-2-27b-it", 1, "bf16", 50.72),
        ("Qwen2.5-0.5B", 1, "bf16", 0.93),
    ],
)
def test_weight_bytes_are_within_1_percent_of_logged_start_ups(name: str, ranks: int, dtype: str, gib: float) -> None:
    footprint = Footprint(model(name), tensor_parallel=ranks, weights_dtype=dtype)
    rounding = 0.005  # the logs print two digits
    assert footprint.weight_bytes / 2**30 == pytest.approx(gib, abs=0.01 * gib + rounding)


@pytest.mark.oracle
def test_int4_weights_are_short_of_the_logged_by_their_scales() -> None:
    logged = 5.38 * 2**30  # w4a16 of Llama-3.1-8B in vLLM 0.19: a 16-bit scale for each 128 weights
    footprint = Footprint(model("llama-3.1-8b"), weights_dtype="int4")
    assert footprint.weight_bytes < logged
    assert footprint.weight_bytes + footprint.linear_parameters / 128 * 2 == pytest.approx(logged, rel=0.015)


def test_embeddings_stay_at_16_bits_when_weights_are_narrower() -> None:
    footprint = Footprint(model("llama-3.1-8b"), weights_dtype="fp8")
    assert footprint.weight_bytes == footprint.linear_parameters + 2 * 2 * 128_256 * 4096


@pytest.mark.parametrize(("dtype", "expected"), [("bf16", 200), ("fp32", 400), ("int8", 100), ("int4", 50)])
def test_bytes_of_a_hundred_numbers(dtype: str, expected: int) -> None:
    assert weight_bytes(100, dtype) == expected


def test_half_a_byte_is_rounded_up() -> None:
    assert weight_bytes(3, "int4") == 2


def test_what_is_no_type_and_no_count_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^dtype: unknown type 'fp12'"):
        dtype_bits("fp12")
    with pytest.raises(ValueError, match=r"^parameters: 0 is impossible"):
        weight_bytes(0)
