"""Loaded weights: what each rank of each stage holds, quantised or not."""

import pytest

from kvsim.capacity.weights.loaded import loaded_weights, stage_layers
from kvsim.capacity.weights.quantization import of_checkpoint, of_config, scheme, schemes
from kvsim.catalog.models import model
from kvsim.errors import InputError

GIB = 2**30


def gib(name, **how):
    return [round(stage.weight_bytes / GIB, 2) for stage in loaded_weights(model(name), **how)]


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("name", "how", "logged"),
    [
        # vLLM 0.19 on H100 (llm-d-incubation/llm-d-planner pull 205).
        ("llama-3.1-8b", {}, [14.99]),
        ("llama-3.1-8b", {"dtype": "fp32"}, [29.98]),
        ("llama-3.1-8b", {"ranks": 2}, [7.51]),
        ("llama-3.1-8b", {"ranks": 4}, [3.77]),
        ("llama-3.1-8b", {"scheme": scheme("fp8")}, [8.49]),
        ("qwen3-30b-a3b", {}, [56.88]),
        ("qwen2.5-7b", {"scheme": scheme("w8a8")}, [8.14]),
        # vLLM 0.6 (vllm-project/vllm pull 10511): 8,192 positions need no rotary tables worth mentioning.
        ("llama-3-8b", {}, [14.96]),
    ],
)
def test_weights_are_what_start_ups_print(name, how, logged):
    assert gib(name, **how) == logged


@pytest.mark.oracle
@pytest.mark.parametrize(("name", "logged"), [("llama-3.1-8b", 5.35), ("phi-4", 8.51)])
def test_four_bits_with_constants_of_eight(name, logged):
    """Public logs of vLLM 0.7.2 on a T4 (2025-02-13) and of 0.6.5 on an A100 (2024-12-22)."""
    assert gib(name, scheme=scheme("bitsandbytes"))[0] == pytest.approx(logged, rel=0.02)


def test_the_end_stages_hold_embedding_and_head():
    first, *middle, last = gib("llama-3.1-8b", stages=4)
    assert first == last == 4.26
    assert middle == [3.28, 3.28]


def test_a_tied_table_is_held_once_on_one_stage_and_twice_on_two():
    one, two = gib("llama-3.2-1b"), gib("llama-3.2-1b", stages=2)
    assert sum(two) - one[0] == pytest.approx(128256 * 2048 * 2 / GIB + 131072 * 64 * 2 / GIB, abs=0.02)


@pytest.mark.parametrize(
    ("layers", "stages", "dealt"), [(32, 4, [8, 8, 8, 8]), (30, 4, [7, 8, 8, 7]), (31, 2, [16, 15]), (5, 1, [5])]
)
def test_layers_left_over_go_to_the_stages_before_the_last(layers, stages, dealt):
    assert stage_layers(layers, stages) == dealt


def test_kv_projections_are_repeated_where_ranks_outnumber_kv_heads():
    eight, sixteen = (loaded_weights(model("llama-3.1-8b"), ranks=n)[0].weight_bytes for n in (8, 16))
    kv = 32 * 2 * 4096 * 128 * 2
    rope = 131072 * 128 * 2
    assert (sixteen - rope - kv) * 2 == pytest.approx(eight - rope - kv, rel=1e-6)


def test_latent_attention_keeps_its_down_projections_whole_on_every_rank():
    one, eight = (loaded_weights(model("deepseek-v2-lite"), ranks=n)[0].weight_bytes for n in (1, 8))
    assert eight > one / 8
    whole = loaded_weights(model("deepseek-v2-lite"), ranks=8, attention_ranks=1)[0].weight_bytes
    assert whole > eight


def test_group_scales_are_counted_and_the_tables_stay_at_16_bits():
    shape = model("llama-3.1-8b")
    tables = 2 * 128256 * 4096
    linear = 8_029_995_008 - tables
    rope = 131072 * 128 * 2
    awq = loaded_weights(shape, scheme=scheme("awq"))[0].weight_bytes
    assert awq == pytest.approx(2 * tables + linear * (4 + 20 / 128) / 8 + rope, rel=1e-6)


def test_mxfp4_touches_the_experts_alone_and_pads_them():
    # gpt-oss-20b, vLLM 0.19: 13.64 GiB logged on one GPU, 7.01 on two.
    assert gib("gpt-oss-20b", scheme=scheme("mxfp4"))[0] == pytest.approx(13.64, rel=0.005)
    assert gib("gpt-oss-20b", scheme=scheme("mxfp4"), ranks=2)[0] == pytest.approx(7.01, rel=0.01)


def test_gguf_types_are_mean_bits_over_everything():
    # llama.cpp prints 4.58 GiB for Llama-3.1-8B Q4_K_M.
    assert gib("llama-3-8b", scheme=scheme("q4_k_m"))[0] == pytest.approx(4.58, rel=0.005)


@pytest.mark.parametrize("name", list(schemes()))
def test_every_scheme_makes_weights_smaller_and_says_where_it_comes_from(name):
    shape = model("gpt-oss-20b")
    if scheme(name).quantized == ("mlp",):
        shape = model("llama-3.1-8b")
    assert loaded_weights(shape, scheme=scheme(name))[0].weight_bytes < loaded_weights(shape)[0].weight_bytes
    assert scheme(name).source


@pytest.mark.parametrize(
    ("name", "bare", "stated"),
    [
        ("RedHatAI/Qwen2.5-7B-Instruct-quantized.w8a8", "RedHatAI/Qwen2.5-7B-Instruct", "int8"),
        ("RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w4a16", "RedHatAI/Meta-Llama-3.1-8B-Instruct", "w4a16"),
        ("Qwen/Qwen3-235B-A22B-FP8", "Qwen/Qwen3-235B-A22B", "fp8-block"),
        ("meta-llama/Meta-Llama-3.1-405B-Instruct-FP8", "meta-llama/Meta-Llama-3.1-405B-Instruct", "fbgemm-fp8"),
        ("Qwen/Qwen2.5-7B-Instruct-AWQ", "Qwen/Qwen2.5-7B-Instruct", "awq"),
        ("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4", "Qwen/Qwen2.5-7B-Instruct", "gptq"),
        ("openai/gpt-oss-20b", "openai/gpt-oss-20b", "mxfp4"),
        ("deepseek-ai/DeepSeek-R1-Distill-Llama-8B", "deepseek-ai/DeepSeek-R1-Distill-Llama-8B", None),
        ("google/gemma-3-4b-it (a remark)", "google/gemma-3-4b-it", None),
    ],
)
def test_a_checkpoints_name_says_its_quantisation(name, bare, stated):
    assert of_checkpoint(name) == (bare, stated)


def test_an_unknown_scheme_names_the_known():
    with pytest.raises(InputError, match=r"unknown quantization 'awk': the closest is awq; known are fp8, fp8-block"):
        scheme("awk")


@pytest.mark.parametrize(
    ("stated", "name", "bits"),
    [
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, "awq", 4 + 20 / 128),
        ({"quant_method": "gptq", "bits": 4, "group_size": 32}, "gptq", 4 + 20 / 32),
        ({"quant_method": "gptq", "bits": 8, "group_size": 128}, "int8", 8),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True, "load_in_4bit": False}, "int8", 8),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8-block", 8 + 32 / 16384),
        ({"quant_method": "fp8", "weight_block_size": None}, "fp8", 8),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4", 4.5),
        ({"quant_method": "compressed-tensors", "config_groups": {"g": {"weights": {"num_bits": 4, "type": "int"}}}},
         "w4a16", 4.125),
        ({"quant_method": "compressed-tensors", "config_groups": {"g": {"weights": {"num_bits": 8, "type": "float"}}}},
         "fp8", 8),
        ({"quant_method": "compressed-tensors", "config_groups": {"g": {"weights": {"num_bits": 8, "type": "int"}}}},
         "int8", 8),
    ],
    ids=str,
)  # fmt: skip
def test_the_quantisation_of_a_config_is_read_with_its_own_bits_and_groups(stated, name, bits):
    found = of_config(stated)
    assert (found.name, found.weight_bits) == (name, bits)


def test_a_config_without_a_method_states_no_quantisation():
    assert of_config({}) is None
