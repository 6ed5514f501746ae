"""A model is found by any name that people write, and a wrong one is told its neighbours."""

from dataclasses import replace
from pathlib import Path

import pytest

from kvsim.catalog.models import model, models
from kvsim.errors import InputError


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("llama-3.1-8b", "llama-3.1-8b"),
        ("Llama-3.1-8B", "llama-3.1-8b"),
        ("llama3.1-8b", "llama-3.1-8b"),
        ("meta-llama/Llama-3.1-8B", "llama-3.1-8b"),
        ("meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b"),
        ("meta-llama/Meta-Llama-3-8B-Instruct", "llama-3-8b"),
        ("meta-llama/Llama-2-7b-chat-hf", "llama-2-7b"),
        ("google/gemma-2-27b-it", "gemma-2-27b"),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", "mixtral-8x7b"),
        ("deepseek-ai/DeepSeek-R1", "deepseek-v3"),
        ("Qwen/Qwen3-4B-Thinking-2507", "qwen3-4b-thinking-2507"),
        ("OPT-13B", "opt-13b"),
    ],
)
def test_a_model_is_found_however_it_is_written(written: str, found: str) -> None:
    assert model(written).name == found


def test_every_model_is_found_by_each_of_its_own_names() -> None:
    listed = models()
    assert len(listed) == len({m.name for m in listed}) >= 92
    for m in listed:
        for written in (m.name, m.hf_id, m.hf_id.upper(), *m.aliases):
            assert model(written) == m, written


def test_every_model_says_where_its_facts_come_from() -> None:
    assert [m.name for m in models() if not m.source] == []


def test_the_models_of_the_worked_examples() -> None:
    qwen3 = model("Qwen3-4B-Thinking-2507")
    assert (qwen3.layers, qwen3.hidden, qwen3.intermediate, qwen3.heads) == (36, 2560, 9728, 32)
    assert (qwen3.kv_heads, qwen3.head_dim, qwen3.vocab) == (8, 128, 151_936)
    assert (qwen3.tied_embeddings, qwen3.max_context) == (True, 262_144)
    small = model("Qwen2.5-1.5B")
    assert (small.layers, small.hidden, small.intermediate, small.heads) == (28, 1536, 8960, 12)
    assert (small.kv_heads, small.head_dim, small.vocab, small.tied_embeddings) == (2, 128, 151_936, True)


def test_a_model_without_kv_heads_says_none() -> None:
    assert model("deepseek-v3").is_mla
    assert model("deepseek-v3").kv_heads is None
    assert model("mistral-7b-v0.1").kv_heads == 8


def test_an_unknown_name_gets_the_three_closest() -> None:
    with pytest.raises(InputError) as error:
        model("llama-3.1-9b")
    message = str(error.value)
    assert "unknown model 'llama-3.1-9b'" in message
    assert message.split("closest are ")[1].split(";")[0].split(", ")[0] == "llama-3.1-8b"
    assert len(message.split("closest are ")[1].split(";")[0].split(", ")) == 3


@pytest.mark.parametrize("written", ["", "-", "llama", "mistral-7b", "x" * 5_000, "\0"])
def test_what_names_no_model_is_refused(written: str) -> None:
    with pytest.raises(InputError, match="unknown model"):
        model(written)


def test_a_path_that_is_not_there_is_named() -> None:
    with pytest.raises(InputError, match=r"nowhere/config\.json: cannot be read"):
        model("nowhere/config.json")


def test_a_name_wins_over_a_folder_of_that_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "llama-3.1-8b").mkdir()
    monkeypatch.chdir(tmp_path)
    assert model("llama-3.1-8b").layers == 32
    with pytest.raises(InputError, match=r"llama-3\.1-8b/config\.json: cannot be read"):
        model("./llama-3.1-8b")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("layers", 0),
        ("hidden", -1),
        ("heads", 0),
        ("layers", 31),
        ("kv_caching_full_layers", 0),
        ("kv_caching_full_layers", 33),
        ("kv_caching_window_layers", 1),
        ("full_kv_heads", 0),
        ("full_kv_heads", 5),
        ("full_head_dim", None),
        ("vocab", 0),
        ("max_context", 0),
        ("moe_layers", 33),
        ("parameters_from", "hearsay"),
    ],
)
def test_an_impossible_architecture_names_the_field(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"^{field}|^moe_intermediate"):
        replace(model("llama-3.1-8b"), **{field: value})


def test_more_active_experts_than_experts_are_impossible() -> None:
    with pytest.raises(ValueError, match=r"^experts_active: 9 of 8"):
        replace(model("mixtral-8x7b"), experts_active=9)


def test_a_window_needs_its_length() -> None:
    with pytest.raises(ValueError, match=r"^window_tokens"):
        replace(model("gemma-2-9b"), window_tokens=None)
