"""The footprint is exact: figures computed by hand and published ones, and the laws that bytes obey."""

import csv
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvsim.catalog.footprint import BatchBytes, Footprint, blocks, kv_bytes
from kvsim.catalog.models import Model, model, models
from kvsim.catalog.weights import weight_bytes

MIB, GIB = 2**20, 2**30


@pytest.fixture
def qwen3_4b() -> Footprint:
    return Footprint(model("Qwen3-4B-Thinking-2507"))


@pytest.mark.parametrize(("tokens", "expected"), [(1, 147_456), (100, 14_745_600), (101, 14_893_056)])
def test_qwen3_4b_takes_147_456_bytes_for_each_token(qwen3_4b: Footprint, tokens: int, expected: int) -> None:
    assert qwen3_4b.sequence_bytes(tokens) == expected


@pytest.mark.parametrize(
    ("tokens", "size", "unit", "digits"),
    [
        (100, 14.06, MIB, 2),
        (1, 0.141, MIB, 3),
        (101, 14.20, MIB, 2),
        (300, 42.19, MIB, 2),
        (4_096, 0.5625, GIB, 4),
        (32_768, 4.50, GIB, 2),
    ],
)
def test_qwen3_4b_has_the_sizes_people_quote(
    qwen3_4b: Footprint, tokens: int, size: float, unit: int, digits: int
) -> None:
    assert round(qwen3_4b.sequence_bytes(tokens) / unit, digits) == size


def test_eight_sequences_of_32768_tokens_take_36_gib(qwen3_4b: Footprint) -> None:
    assert 8 * qwen3_4b.sequence_bytes(32_768) == 36 * GIB
    assert qwen3_4b.batch([32_767] * 8, [1] * 8).total == 36 * GIB


def test_the_kv_of_54253_tokens_equals_four_billion_bf16_weights(qwen3_4b: Footprint) -> None:
    weights = weight_bytes(4 * 10**9)
    assert round(weights / GIB, 2) == 7.45
    assert qwen3_4b.tokens_in(weights) == 54_253
    assert qwen3_4b.sequence_bytes(54_253) <= weights < qwen3_4b.sequence_bytes(54_254)


@pytest.mark.parametrize(("tokens", "gigabytes"), [(1_024, 0.54), (2_048, 1.07), (4_096, 2.15)])
def test_the_plain_formula_and_what_fewer_kv_heads_save(tokens: int, gigabytes: float) -> None:
    all_heads = kv_bytes(layers=32, kv_heads=32, head_dim=128, tokens=tokens)
    assert round(all_heads / 1e9, 2) == gigabytes
    assert 4 * kv_bytes(layers=32, kv_heads=8, head_dim=128, tokens=tokens) == all_heads
    assert 32 * kv_bytes(layers=32, kv_heads=1, head_dim=128, tokens=tokens) == all_heads


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("name", "per_token"),
    [
        ("OPT-13B", 819_200),  # PagedAttention paper, section 3: 800 KB
        ("Llama-3.1-70B", 327_680),  # Mooncake paper: 320 KB
        ("Llama-3.1-405B", 516_096),  # DeepSeek-V3 hardware paper, table 1
        ("DeepSeek-V3", 70_272),  # the same
        ("Qwen2.5-72B", 327_680),  # the same
    ],
)
def test_published_bytes_per_token(name: str, per_token: int) -> None:
    assert Footprint(model(name)).kv_bytes_per_token == per_token


@pytest.mark.parametrize("listed", models(), ids=lambda m: m.name)
def test_every_model_of_the_catalogue_has_its_published_bytes_per_token(listed: Model) -> None:
    footprint = Footprint(listed)
    assert footprint.kv_bytes_per_token == listed.kv_bytes_per_token_near_bf16
    assert footprint.kv_bytes_per_token_far == listed.kv_bytes_per_token_far_bf16


def test_every_model_of_the_shared_data_has_its_two_kv_columns() -> None:
    folder = os.environ.get("KVSIM_DATA")
    if not folder:
        pytest.skip("KVSIM_DATA is not set: the shared data is not at hand")
    with (Path(folder) / "models.csv").open(encoding="utf-8", newline="") as table:
        rows = list(csv.DictReader(table))
    assert len(rows) >= 90
    for row in rows:
        footprint = Footprint(model(row["name"]))
        assert footprint.kv_bytes_per_token == int(row["kv_bytes_per_token_near_bf16"]), row["name"]
        assert footprint.kv_bytes_per_token_far == int(row["kv_bytes_per_token_far_bf16"]), row["name"]


def test_window_layers_stop_growing_when_the_window_is_full() -> None:
    gemma = Footprint(model("gemma-3-27b"))  # 10 full layers, 52 of 1,024 tokens, 16 KV heads of 128
    full, window = 10 * 2 * 16 * 128 * 2, 52 * 2 * 16 * 128 * 2
    assert gemma.sequence_bytes(1_024) == 1_024 * (full + window)
    assert gemma.sequence_bytes(1_025) == 1_025 * full + 1_024 * window
    assert gemma.sequence_bytes(5_000) - gemma.sequence_bytes(4_999) == gemma.kv_bytes_per_token_far == full


def test_state_layers_cost_the_same_at_any_length() -> None:
    hybrid = Footprint(model("qwen3-next-80b-a3b"))
    assert hybrid.state_bytes == 36 * 548_864 * 2
    assert hybrid.sequence_bytes(1) == hybrid.state_bytes + hybrid.kv_bytes_per_token
    assert Footprint(model("qwen3-next-80b-a3b"), state_dtype="fp32").state_bytes == 2 * hybrid.state_bytes


def test_layers_that_share_kv_count_once() -> None:
    assert Footprint(model("hunyuan-large")).kv_bytes_per_token == kv_bytes(32, 8, 128, 1)


def test_kv_heads_are_split_over_ranks_down_to_one() -> None:
    per_token = [Footprint(model("llama-3.1-8b"), tensor_parallel=n).kv_bytes_per_token for n in (1, 2, 8, 16)]
    assert per_token == [131_072, 65_536, 16_384, 16_384]


def test_a_latent_is_held_whole_by_every_rank() -> None:
    deepseek = model("deepseek-v3")
    assert Footprint(deepseek, tensor_parallel=8).kv_bytes_per_token == 70_272
    assert Footprint(deepseek, tensor_parallel=8).weight_bytes == pytest.approx(
        Footprint(deepseek).weight_bytes / 8, abs=1
    )


def test_the_type_of_the_kv_is_apart_from_that_of_the_weights() -> None:
    plain = Footprint(model("llama-3.1-8b"))
    narrow = Footprint(model("llama-3.1-8b"), kv_dtype="fp8")
    assert 2 * narrow.kv_bytes_per_token == plain.kv_bytes_per_token
    assert narrow.weight_bytes == plain.weight_bytes
    assert 4 * Footprint(model("llama-3.1-8b"), kv_dtype="int4").kv_bytes_per_token == plain.kv_bytes_per_token
    assert Footprint(model("llama-3.1-8b"), kv_dtype="fp32").kv_bytes_per_token == 2 * plain.kv_bytes_per_token


def test_a_ragged_batch_is_the_sum_over_requests(qwen3_4b: Footprint) -> None:
    assert qwen3_4b.batch([100, 7, 1], [1, 30, 5]) == BatchBytes(
        prefill=108 * 147_456, growth=36 * 147_456, total=144 * 147_456
    )


def test_a_batch_of_a_windowed_model_grows_only_where_windows_are_open() -> None:
    mistral = Footprint(model("mistral-7b-v0.1"))  # all 32 layers see 4,096 tokens
    grown = mistral.batch([4_000, 5_000], [200, 200])
    assert grown.growth == 96 * 131_072
    assert grown.prefill == (4_000 + 4_096) * 131_072


@pytest.mark.parametrize(
    ("tokens", "block_size", "expected"),
    [(4_096, 128, (32, 0)), (1, 16, (1, 15)), (17, 16, (2, 15)), (5, 1, (5, 0))],
)
def test_blocks_and_the_slots_lost_in_the_last(
    qwen3_4b: Footprint, tokens: int, block_size: int, expected: tuple[int, int]
) -> None:
    assert blocks(tokens, block_size) == expected == qwen3_4b.blocks(tokens, block_size)


@pytest.mark.parametrize("bad", [0, -1, 1.5, float("nan"), True, "4", None])
def test_an_impossible_value_is_an_error_that_names_the_argument(qwen3_4b: Footprint, bad: object) -> None:
    llama = model("llama-3.1-8b")
    attempts = {
        "tokens": lambda: qwen3_4b.sequence_bytes(bad),
        "prompts": lambda: qwen3_4b.batch([10, bad], [1, 1]),
        "outputs": lambda: qwen3_4b.batch([10], [bad]),
        "block_size": lambda: blocks(10, bad),
        "tensor_parallel": lambda: Footprint(llama, tensor_parallel=bad),
        "size_bytes": lambda: qwen3_4b.tokens_in(bad),
        "layers": lambda: kv_bytes(bad, 8, 128, 10),
        "kv_heads": lambda: kv_bytes(32, bad, 128, 10),
        "head_dim": lambda: kv_bytes(32, 8, bad, 10),
        "batch": lambda: kv_bytes(32, 8, 128, 10, batch=bad),
    }
    for argument, attempt in attempts.items():
        with pytest.raises(ValueError, match=rf"^{argument}\b"):
            attempt()


def test_a_batch_needs_one_output_for_each_prompt(qwen3_4b: Footprint) -> None:
    with pytest.raises(ValueError, match=r"^outputs: 1 given for 2 prompts"):
        qwen3_4b.batch([1, 2], [3])


@pytest.mark.parametrize("ranks", [3, 5, 64])
def test_tensor_parallel_must_divide_the_heads(ranks: int) -> None:
    with pytest.raises(ValueError, match=f"^tensor_parallel: {ranks} does not divide the 32 heads"):
        Footprint(model("llama-3.1-8b"), tensor_parallel=ranks)


def test_tensor_parallel_must_fit_the_kv_heads() -> None:
    with pytest.raises(ValueError, match=r"^tensor_parallel: 3 neither divides nor is a multiple of the 8 KV"):
        Footprint(model("llama-3.2-3b"), tensor_parallel=3)  # 24 heads share 8 KV heads


@pytest.mark.parametrize("argument", ["kv_dtype", "weights_dtype", "state_dtype"])
def test_an_unknown_type_is_an_error_that_names_the_argument(argument: str) -> None:
    with pytest.raises(ValueError, match=f"^{argument}: unknown type 'bf17'; must be one of fp32, bf16"):
        Footprint(model("llama-3.1-8b"), **{argument: "bf17"})


def test_attention_work_of_one_query_against_one_context_token() -> None:
    llama = Footprint(model("llama-3.1-8b"))
    assert llama.attention_flops_per_pair == 32 * 2 * 32 * (128 + 128)
    assert llama.window_attention_flops_per_pair == 0
    deepseek = Footprint(model("deepseek-v3"))
    assert deepseek.attention_flops_per_pair == 61 * 2 * 128 * (2 * 512 + 64)
    gpt_oss = Footprint(model("gpt-oss-20b"))
    assert gpt_oss.attention_flops_per_pair == gpt_oss.window_attention_flops_per_pair == 12 * 2 * 64 * 128


FULL_ATTENTION = [m for m in models() if not m.window_layers and not m.state_layers]
sizes = st.integers(1, 200_000)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(FULL_ATTENTION), sizes, st.integers(1, 64))
def test_doubling_length_or_batch_of_a_full_attention_model_doubles_the_bytes(
    m: Model, tokens: int, requests: int
) -> None:
    footprint = Footprint(m)
    assert footprint.sequence_bytes(2 * tokens) == 2 * footprint.sequence_bytes(tokens)
    once = footprint.batch([tokens] * requests, [1] * requests).total
    assert footprint.batch([tokens] * 2 * requests, [1] * 2 * requests).total == 2 * once


@settings(max_examples=60, deadline=None)
@given(st.tuples(st.integers(1, 200), st.integers(1, 128), st.integers(1, 512), sizes, st.integers(1, 99)))
def test_doubling_any_factor_of_the_plain_formula_doubles_the_bytes(factors: tuple[int, ...]) -> None:
    once = kv_bytes(*factors)
    for i in range(len(factors)):
        doubled = list(factors)
        doubled[i] *= 2
        assert kv_bytes(*doubled) == 2 * once


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(FULL_ATTENTION), st.integers(1, 5_000))
def test_doubling_layers_or_heads_of_a_full_attention_model_doubles_the_bytes(m: Model, tokens: int) -> None:
    once = Footprint(m).sequence_bytes(tokens)
    deeper = replace(
        m,
        layers=2 * m.layers,
        full_attn_layers=2 * m.full_attn_layers,
        kv_caching_full_layers=2 * m.kv_caching_full_layers,
    )
    assert Footprint(deeper).sequence_bytes(tokens) == 2 * once
    if m.full_kv_heads:
        wider = replace(m, heads=2 * m.heads, full_kv_heads=2 * m.full_kv_heads)
        assert Footprint(wider).sequence_bytes(tokens) == 2 * once


@settings(max_examples=100, deadline=None)
@given(st.sampled_from([m for m in models() if m.kv_caching_full_layers]), st.integers(1, 2**40))
def test_tokens_in_is_the_longest_sequence_that_fits(m: Model, room: int) -> None:
    footprint = Footprint(m)
    longest = footprint.tokens_in(room)
    assert longest == 0 or footprint.sequence_bytes(longest) <= room
    assert footprint.sequence_bytes(longest + 1) > room


def test_a_model_that_forgets_everything_holds_any_length() -> None:
    mistral = Footprint(model("mistral-7b-v0.1"))
    assert mistral.tokens_in(4_000 * 131_072) == 4_000
    with pytest.raises(ValueError, match=r"^size_bytes: mistral-7b-v0.1 holds any length"):
        mistral.tokens_in(4_096 * 131_072)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(models()), st.lists(st.tuples(st.integers(1, 9_000), st.integers(1, 9_000)), max_size=6))
def test_a_batch_is_its_requests_one_by_one(m: Model, requests: list[tuple[int, int]]) -> None:
    footprint = Footprint(m)
    whole = footprint.batch([p for p, _ in requests], [o for _, o in requests])
    single = [footprint.batch([p], [o]) for p, o in requests]
    assert whole.prefill == sum(one.prefill for one in single)
    assert whole.growth == sum(one.growth for one in single)
    assert whole.total == whole.prefill + whole.growth
