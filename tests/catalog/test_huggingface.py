"""A Hugging Face config.json reads as the same model that the catalogue holds."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from kvsim.catalog.footprint import Footprint
from kvsim.catalog.models import Model, model
from kvsim.errors import InputError

LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": False,
}

# The keys of each published config.json that matter here, written as they are published: defaults left out.
PUBLISHED: dict[str, dict[str, Any]] = {
    "llama-3.1-8b": LLAMA,
    "mistral-7b-v0.1": {
        "model_type": "mistral",
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "sliding_window": 4096,
        "vocab_size": 32000,
        "max_position_embeddings": 32768,
    },
    "qwen2.5-7b": {
        "model_type": "qwen2",
        "hidden_size": 3584,
        "intermediate_size": 18944,
        "num_hidden_layers": 28,
        "num_attention_heads": 28,
        "num_key_value_heads": 4,
        "sliding_window": 131072,
        "use_sliding_window": False,
        "max_window_layers": 28,
        "vocab_size": 152064,
        "max_position_embeddings": 131072,
        "tie_word_embeddings": False,
    },
    "qwen3-4b-thinking-2507": {
        "model_type": "qwen3",
        "head_dim": 128,
        "hidden_size": 2560,
        "intermediate_size": 9728,
        "num_hidden_layers": 36,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "sliding_window": None,
        "use_sliding_window": False,
        "vocab_size": 151936,
        "max_position_embeddings": 262144,
        "tie_word_embeddings": True,
    },
    "gemma-2-9b": {
        "model_type": "gemma2",
        "head_dim": 256,
        "hidden_size": 3584,
        "intermediate_size": 14336,
        "num_hidden_layers": 42,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "sliding_window": 4096,
        "vocab_size": 256000,
        "max_position_embeddings": 8192,
    },
    "gemma-3-4b": {  # the published text_config really is this short
        "model_type": "gemma3",
        "text_config": {
            "model_type": "gemma3_text",
            "hidden_size": 2560,
            "intermediate_size": 10240,
            "num_hidden_layers": 34,
            "sliding_window": 1024,
        },
    },
    "mixtral-8x7b": {
        "model_type": "mixtral",
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "num_local_experts": 8,
        "num_experts_per_tok": 2,
        "sliding_window": None,
        "vocab_size": 32000,
        "max_position_embeddings": 32768,
    },
    "qwen3-30b-a3b": {
        "model_type": "qwen3_moe",
        "decoder_sparse_step": 1,
        "head_dim": 128,
        "hidden_size": 2048,
        "intermediate_size": 6144,
        "mlp_only_layers": [],
        "moe_intermediate_size": 768,
        "num_attention_heads": 32,
        "num_experts": 128,
        "num_experts_per_tok": 8,
        "num_hidden_layers": 48,
        "num_key_value_heads": 4,
        "use_sliding_window": False,
        "vocab_size": 151936,
        "max_position_embeddings": 40960,
        "tie_word_embeddings": False,
    },
    "deepseek-v2-lite": {
        "model_type": "deepseek_v2",
        "first_k_dense_replace": 1,
        "hidden_size": 2048,
        "intermediate_size": 10944,
        "kv_lora_rank": 512,
        "moe_intermediate_size": 1408,
        "moe_layer_freq": 1,
        "n_routed_experts": 64,
        "n_shared_experts": 2,
        "num_attention_heads": 16,
        "num_experts_per_tok": 6,
        "num_hidden_layers": 27,
        "num_key_value_heads": 16,
        "q_lora_rank": None,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "vocab_size": 102400,
        "max_position_embeddings": 32768,
    },
    "deepseek-v3": {
        "model_type": "deepseek_v3",
        "first_k_dense_replace": 3,
        "hidden_size": 7168,
        "intermediate_size": 18432,
        "kv_lora_rank": 512,
        "moe_intermediate_size": 2048,
        "moe_layer_freq": 1,
        "n_routed_experts": 256,
        "n_shared_experts": 1,
        "num_attention_heads": 128,
        "num_experts_per_tok": 8,
        "num_hidden_layers": 61,
        "num_key_value_heads": 128,
        "q_lora_rank": 1536,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "vocab_size": 129280,
        "max_position_embeddings": 163840,
    },
    "opt-13b": {
        "model_type": "opt",
        "ffn_dim": 20480,
        "hidden_size": 5120,
        "num_attention_heads": 40,
        "num_hidden_layers": 40,
        "vocab_size": 50272,
        "max_position_embeddings": 2048,
    },
    "falcon-7b": {
        "model_type": "falcon",
        "hidden_size": 4544,
        "multi_query": True,
        "new_decoder_architecture": False,
        "num_attention_heads": 71,
        "num_hidden_layers": 32,
        "vocab_size": 65024,
    },
    "falcon-40b": {
        "model_type": "falcon",
        "hidden_size": 8192,
        "multi_query": True,
        "new_decoder_architecture": True,
        "num_attention_heads": 128,
        "num_hidden_layers": 60,
        "num_kv_heads": 8,
        "vocab_size": 65024,
    },
    "phi-3-mini-4k": {
        "model_type": "phi3",
        "hidden_size": 3072,
        "intermediate_size": 8192,
        "num_attention_heads": 32,
        "num_hidden_layers": 32,
        "num_key_value_heads": 32,
        "sliding_window": 2047,
        "vocab_size": 32064,
        "max_position_embeddings": 4096,
    },
    "gpt-oss-20b": {
        "model_type": "gpt_oss",
        "experts_per_token": 4,
        "head_dim": 64,
        "hidden_size": 2880,
        "intermediate_size": 2880,
        "layer_types": ["sliding_attention", "full_attention"] * 12,
        "num_attention_heads": 64,
        "num_hidden_layers": 24,
        "num_key_value_heads": 8,
        "num_local_experts": 32,
        "sliding_window": 128,
        "vocab_size": 201088,
        "max_position_embeddings": 131072,
        "tie_word_embeddings": False,
    },
}

# What names a row rather than describing its model, and the figures that others published about it.
NOT_ARCHITECTURE = {"name", "hf_id", "aliases", "attention", "note", "source"}
PUBLISHED_FIGURES = {"params_total_b", "params_active_b", "other_params_b", "rope_elements"}
KV_CHECKS = {"kv_bytes_per_token_near_bf16", "kv_bytes_per_token_far_bf16"}


def write(folder: Path, config: dict[str, Any]) -> Path:
    file = folder / "config.json"
    file.write_text(json.dumps(config), encoding="utf-8")
    return file


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_config_reads_as_the_model_of_the_catalogue(name: str, tmp_path: Path) -> None:
    read, known = model(write(tmp_path, PUBLISHED[name])), model(name)
    for field in fields(Model):
        if field.name not in NOT_ARCHITECTURE | PUBLISHED_FIGURES | KV_CHECKS:
            assert getattr(read, field.name) == getattr(known, field.name), field.name
    assert Footprint(read).kv_bytes_per_token == known.kv_bytes_per_token_near_bf16
    assert Footprint(read).kv_bytes_per_token_far == known.kv_bytes_per_token_far_bf16
    assert Footprint(read).weight_bytes == Footprint(known).weight_bytes


def test_a_folder_that_holds_a_config_is_a_model_with_its_name(tmp_path: Path) -> None:
    folder = tmp_path / "My-Model"
    folder.mkdir()
    write(folder, LLAMA)
    for written in (folder, str(folder), f"{folder}/config.json", folder / "config.json"):
        read = model(written)
        assert (read.name, read.layers, read.attention) == ("My-Model", 32, "gqa")
        assert read.source.endswith("config.json")


def test_the_name_in_the_file_wins(tmp_path: Path) -> None:
    assert model(write(tmp_path, LLAMA | {"_name_or_path": "owner/Thing-8B"})).name == "Thing-8B"


def test_layers_that_slide_are_taken_from_the_list_of_layer_types(tmp_path: Path) -> None:
    types = ["sliding_attention"] * 24 + ["full_attention"] * 8
    read = model(write(tmp_path, LLAMA | {"layer_types": types, "sliding_window": 512}))
    assert (read.full_attn_layers, read.window_layers, read.window_tokens) == (8, 24, 512)
    assert read.attention == "hybrid-swa"


def test_qwen2_slides_only_beyond_its_first_layers_when_it_says_so(tmp_path: Path) -> None:
    sliding = PUBLISHED["qwen2.5-7b"] | {"use_sliding_window": True, "max_window_layers": 20}
    assert model(write(tmp_path, sliding)).window_layers == 8


def test_qwen_layers_without_experts_are_dense(tmp_path: Path) -> None:
    sparse = PUBLISHED["qwen3-30b-a3b"] | {"decoder_sparse_step": 2, "mlp_only_layers": [1, 3]}
    assert model(write(tmp_path, sparse)).moe_layers == 22


def test_a_sparse_attention_indexer_caches_its_key(tmp_path: Path) -> None:
    indexed = PUBLISHED["deepseek-v3"] | {
        "model_type": "deepseek_v32",
        "index_head_dim": 128,
        "index_n_heads": 64,
    }
    read = model(write(tmp_path, indexed))
    assert read.attention == "mla+index"
    assert Footprint(read).kv_bytes_per_token == 85_888


NEEDED = [
    ("llama-3.1-8b", "hidden_size"),
    ("llama-3.1-8b", "num_hidden_layers"),
    ("llama-3.1-8b", "num_attention_heads"),
    ("llama-3.1-8b", "vocab_size"),
    ("llama-3.1-8b", "intermediate_size"),
    ("llama-3.1-8b", "max_position_embeddings"),
    ("mixtral-8x7b", "num_local_experts"),
    ("qwen3-30b-a3b", "moe_intermediate_size"),
    ("deepseek-v3", "kv_lora_rank"),
    ("deepseek-v3", "qk_rope_head_dim"),
    ("deepseek-v3", "num_experts_per_tok"),
    ("opt-13b", "ffn_dim"),
    ("llama-3.1-8b", "model_type"),
]


@pytest.mark.parametrize(("name", "missing"), NEEDED)
def test_a_missing_key_is_named_with_its_file(name: str, missing: str, tmp_path: Path) -> None:
    config = {k: v for k, v in PUBLISHED[name].items() if k != missing}
    with pytest.raises(InputError, match=rf"config\.json: key {missing}.* is missing"):
        model(write(tmp_path, config))


def test_a_key_missing_inside_text_config_is_named_with_its_place(tmp_path: Path) -> None:
    config = {"model_type": "gemma3", "text_config": {"model_type": "gemma3_text", "hidden_size": 2560}}
    with pytest.raises(InputError, match=r"key text_config\.num_hidden_layers or .* is missing"):
        model(write(tmp_path, config))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("num_hidden_layers", 0),
        ("num_hidden_layers", "32"),
        ("num_hidden_layers", 10_001),
        ("vocab_size", 2**53 + 1),
        ("model_type", ["llama"]),
        ("hidden_size", 4096.5),
        ("hidden_size", 4097),
        ("vocab_size", -1),
        ("head_dim", True),
        ("layer_types", ["full_attention"]),
        ("layer_types", ["mamba"] * 32),
        ("layer_types", 7),
        ("model_type", "perceptron"),
    ],
)
def test_an_impossible_value_is_named_with_file_and_key(key: str, value: object, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rf"config\.json: key {key} is "):
        model(write(tmp_path, LLAMA | {key: value}))


def test_heads_that_do_not_divide_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"config\.json: full_kv_heads: 5 KV heads cannot share 32 heads"):
        model(write(tmp_path, LLAMA | {"num_key_value_heads": 5}))


@pytest.mark.parametrize("text", [b"{", b"[1]", b"null", b"\xff\xfe{}", b""])
def test_a_file_that_is_no_config_is_refused(text: bytes, tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_bytes(text)
    with pytest.raises(InputError, match=r"config\.json: (is not JSON|holds a)"):
        model(file)


def test_a_name_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"config\.json: the name 'a\\ud800' has characters that cannot be shown"):
        model(write(tmp_path, LLAMA | {"_name_or_path": "a\ud800"}))


def test_numbers_nested_without_end_are_no_config(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text("[" * 200_000)
    with pytest.raises(InputError, match=r"config\.json: is not JSON"):
        model(file)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs /dev/zero")
def test_a_device_is_no_config() -> None:
    with pytest.raises(InputError, match=r"^/dev/zero: is no file but"):
        model("/dev/zero")
