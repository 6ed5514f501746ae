"""One request of a real model in bytes: by the formula, and as the engine really has it."""

import pytest

from kvsim import Scenario, run
from kvsim.catalog.footprint import Footprint
from kvsim.catalog.models import model, models
from kvsim.errors import InputError
from kvsim.study.explain.request_bytes import request_bytes


def test_the_exercise_comes_out_by_the_formula_and_in_an_engine():
    found = request_bytes(model("qwen2.5-1.5b"), 200, 100)
    assert found.layers == "28 layers x 2 (K and V) x 2 KV heads x 128"
    assert (found.prefill_bytes, found.bytes_per_token) == (5_734_400, 28_672)
    assert (found.formula_bytes, found.engine_bytes) == (8_601_600, 8_572_928)
    assert (found.blocks, found.block_bytes) == (19, 19 * 16 * 28_672)


@pytest.mark.parametrize("name", ["qwen2.5-1.5b", "llama-3.1-8b", "deepseek-v2-lite", "gemma-2-9b"])
def test_the_engine_s_bytes_are_those_of_a_run_of_that_one_request(name):
    """Grouped heads, a latent, and windows that the request does not fill."""
    found = request_bytes(model(name), 200, 100)
    result = run(
        Scenario.from_dict(
            {
                "model": name,
                "gpu": "H100",
                "pool": {"tokens": 512},
                "workload": {"requests": 1, "rate": "1/s", "prompt_tokens": 200, "output_tokens": 100},
            }
        ),
        stepwise=True,
    )
    assert result.metrics["finished"] == 1
    # Every token whose KV a step computed: the prompt, and each output token but the last.
    computed = result.steps.prefill_tokens.sum() + result.steps.decode_tokens.sum()
    assert computed * Footprint(model(name)).kv_bytes_per_token == found.engine_bytes
    assert max(result.memory.used + result.memory.reserved + result.memory.internal) == found.blocks * 16


def by_layer(shape, tokens):
    """Elements that every layer keeps of a sequence, added up one by one; two bytes each."""
    kept = 0
    for _ in range(shape.kv_caching_full_layers):
        if shape.kv_lora_rank is not None:
            kept += tokens * (shape.kv_lora_rank + shape.qk_rope_head_dim)
        else:
            kept += tokens * shape.full_kv_heads * (shape.full_head_dim + shape.full_v_head_dim)
        kept += tokens * (shape.index_head_dim or 0)
    for _ in range(shape.kv_caching_window_layers):
        kept += (
            min(tokens, shape.window_tokens) * shape.window_kv_heads * (shape.window_head_dim + shape.window_v_head_dim)
        )
    for _ in range(shape.state_layers):
        kept += shape.state_elements_per_layer
    return 2 * kept


@pytest.mark.parametrize("shape", models(), ids=lambda shape: shape.name)
def test_every_model_of_the_catalogue_is_sized_layer_by_layer_or_refused_with_a_reason(shape):
    for prompt, output in ((300, 5), (9_000, 500)):
        if prompt + output > shape.max_context:
            with pytest.raises(InputError, match="has a context of"):
                request_bytes(shape, prompt, output)
        elif "chunked" in shape.attention and prompt + output > shape.window_tokens:
            with pytest.raises(InputError, match="chunked layers"):
                request_bytes(shape, prompt, output)
        else:
            found = request_bytes(shape, prompt, output)
            assert found.prefill_bytes == by_layer(shape, prompt)
            assert found.formula_bytes == by_layer(shape, prompt + output)
            assert found.engine_bytes == by_layer(shape, prompt + output - 1)


def test_fp8_halves_it_and_one_output_token_writes_no_kv_of_its_own():
    found = request_bytes(model("qwen2.5-1.5b"), 200, 1, kv_dtype="fp8")
    assert found.engine_bytes == found.prefill_bytes == 5_734_400 // 2


def test_a_window_that_is_full_adds_nothing_more():
    found = request_bytes(model("mistral-7b-v0.1"), 6_000, 100)
    assert found.far_bytes_per_token == 0
    assert found.prefill_bytes == found.engine_bytes == found.formula_bytes
    assert found.block_bytes is None
    assert found.windows_full


def test_a_request_longer_than_the_context_is_refused_with_both_numbers():
    with pytest.raises(
        InputError, match=r"are 2,100 tokens together, and opt-6\.7b has a context of 2,048; give fewer"
    ):
        request_bytes(model("opt-6.7b"), 2_000, 100)


def test_chunked_layers_are_refused_where_what_they_keep_is_no_matter_of_length():
    assert request_bytes(model("llama-4-scout"), 8_000, 100).engine_bytes > 0
    with pytest.raises(InputError, match="keep what belongs to the present chunk"):
        request_bytes(model("llama-4-scout"), 8_192, 1)


@pytest.mark.parametrize(("numbers", "named"), [((0, 1), "prompt"), ((1, 0), "output"), ((1, -3), "output")])
def test_lengths_that_are_none_are_refused(numbers, named):
    with pytest.raises(ValueError, match=f"{named}_tokens: "):
        request_bytes(model("qwen2.5-1.5b"), *numbers)
