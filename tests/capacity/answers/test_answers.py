"""Verdicts, remedies and pressure: each in the engine's own words, each remedy planned again."""

import json

import pytest

from kvsim.capacity.answers.pressure import pressure
from kvsim.capacity.answers.record import breakdown_gib, record
from kvsim.capacity.answers.remedies import remedies
from kvsim.capacity.deployment import Deployment, Given
from kvsim.capacity.overheads.releases import release
from kvsim.capacity.planner import plan
from kvsim.capacity.span import Span
from kvsim.capacity.weights.quantization import scheme
from kvsim.catalog.gpus import gpu
from kvsim.catalog.models import model, models
from kvsim.errors import InputError
from kvsim.units import GIB


def planned(name="llama-3.1-8b", engine="vllm@0.19", card="H100", **settings):
    one = gpu(card)
    asked = Deployment(
        model=model(name), engine=release(engine), gpu=one, total=Span.exactly(one.memory_bytes), **settings
    )
    return plan(asked)


@pytest.mark.parametrize(
    ("asked", "word", "reason_class"),
    [
        ({}, "fits", None),
        ({"name": "llama-3.1-70b"}, "refused", "no_kv_memory"),
        ({"card": "RTX 4090"}, "refused", "max_model_len_above_pool"),
        ({"used_bytes": 20 * GIB}, "refused", "gpu_memory_taken"),
        ({"card": "RTX 4090", "max_model_len": 8192}, "fits", None),
        (
            {"name": "qwen3-8b", "card": "RTX 4090", "offload_bytes": 4 * GIB, "max_model_len": 8192},
            "offload",
            "weights_on_host",
        ),
        ({"given": Given(kv_memory=Span.exactly(70 * GIB))}, "refused", "out_of_memory"),
        ({"given": Given(num_gpu_blocks=0)}, "refused", "no_kv_memory"),
        ({"name": "llama-2-7b", "max_model_len": 32768}, "at_risk", "max_model_len_above_model"),
        (
            {"name": "gpt-oss-20b", "utilization": 0.95, "scheme": scheme("mxfp4"), "max_model_len": 8192},
            "at_risk",
            "oom_after_kv",
        ),
        (
            {"card": "RTX 4090", "engine": "llama.cpp", "name": "llama-3.1-70b", "scheme": scheme("q4_k_m")},
            "offload",
            "layers_on_host",
        ),
        ({"engine": "sglang@0.5", "utilization": 0.99, "max_model_len": 8192}, "at_risk", "oom_after_kv"),
        ({"engine": "trtllm@1.0", "utilization": 1.0, "max_model_len": 8192}, "at_risk", "oom_after_kv"),
        ({"card": "T4", "engine": "llama.cpp", "scheme": scheme("q4_k_m"), "max_model_len": 4096}, "fits", None),
    ],
)
def test_verdicts(asked, word, reason_class):
    verdict = planned(**asked).verdict
    assert (verdict.word, verdict.reason_class) == (word, reason_class)
    assert verdict.runs == (word != "refused")
    assert bool(verdict.reason) == (word != "fits")


def test_just_at_the_edge_the_interval_makes_it_a_risk():
    made = planned(card="RTX 4090", max_model_len=8192)
    edge = int(made.blocks.best) * 16
    verdict = planned(card="RTX 4090", max_model_len=edge).verdict
    assert (verdict.word, verdict.reason_class) == ("at_risk", "within_error")


@pytest.mark.parametrize(
    "asked",
    [
        {"name": "llama-3.1-70b", "max_model_len": 8192},
        {"card": "RTX 4090"},
        {"name": "gemma-2-27b", "card": "A100-40GB", "max_model_len": 8192},
    ],
)
def test_every_remedy_fits_when_it_is_planned(asked):
    found = remedies(planned(**asked))
    assert found
    for remedy in found:
        assert remedy.max_concurrency >= 1, remedy
        assert remedy.kv_tokens > 0


def test_remedies_are_the_smallest_change_of_their_kind():
    made = planned(name="llama-3.1-70b", max_model_len=32768)
    flags = [remedy.flag for remedy in remedies(made)]
    assert "--tensor-parallel-size 4" in flags
    assert planned(name="llama-3.1-70b", max_model_len=32768, tensor_parallel=2).verdict.word == "refused"
    longest = next(r.flag for r in remedies(planned(card="RTX 4090")) if r.flag.startswith("--max-model-len"))
    tokens = int(longest.split()[1])
    assert planned(card="RTX 4090", max_model_len=tokens).verdict.runs
    assert not planned(card="RTX 4090", max_model_len=tokens + 16).verdict.runs


def test_what_fits_needs_no_remedy():
    assert remedies(planned()) == []


@pytest.mark.parametrize("name", [one.name for one in models() if one.weights_known])
def test_the_breakdown_of_every_model_adds_up_to_the_card(name):
    made = planned(name=name, max_model_len=2048)
    parts = breakdown_gib(made)
    taken = sum(parts[part] for part in ("weights", "activation", "non_torch", "cuda_graphs", "kv", "left"))
    assert taken == pytest.approx(parts["total"], abs=0.0005)


@pytest.mark.parametrize("engine", ["vllm@0.5", "vllm@0.33", "sglang@0.5", "trtllm@1.0", "llama.cpp"])
def test_a_record_is_plain_data_with_the_keys_of_the_contract(engine):
    found = record(planned(engine=engine, max_model_len=8192), lengths={"mean": 1000, "p95": 4000})
    assert json.loads(json.dumps(found)) == found
    assert set(found) >= {
        "verdict", "reason_class", "reason", "kv_tokens", "kv_tokens_interval", "kv_blocks", "block_size",
        "kv_memory_gib", "kv_bytes_per_token", "max_concurrency", "binding_rank", "breakdown_gib", "provenance",
        "not_modelled",
    }  # fmt: skip
    assert set(found["breakdown_gib"]) == {
        "total", "usable", "weights", "activation", "non_torch", "cuda_graphs", "kv", "left",
    }  # fmt: skip
    low, high = found["kv_tokens_interval"]
    assert low <= found["kv_tokens"] <= high
    assert found["requests_at_once"]["mean"] > found["requests_at_once"]["p95"] > 0


def test_bytes_a_token_are_one_number_only_where_every_layer_holds_every_token():
    assert record(planned())["kv_bytes_per_token"] == 131072
    assert record(planned(name="gemma-2-27b"))["kv_bytes_per_token"] is None
    assert record(planned(name="qwen3.5-27b"))["kv_bytes_per_token"] is None


def test_a_hybrid_model_has_a_minimum_below_what_is_allocated():
    found = record(planned(name="gemma-3-12b"))
    assert found["minimum_bytes"] < found["as_allocated_bytes"]


def test_the_poorest_stage_decides_and_is_named():
    made = planned(pipeline_parallel=4)
    assert made.stage.name == "stage 4 of 4"
    assert made.blocks.best == min(stage.blocks.best for stage in made.stages)


def test_what_is_given_replaces_the_estimate():
    given = Given(
        weights=Span.printed_gib("14.99"),
        activation=Span.printed_gib("1.89"),
        non_torch=Span.printed_gib("0.25"),
        cuda_graphs=Span.printed_gib("0.91"),
    )
    made = planned(utilization=0.95, max_model_len=8192, given=given)
    # C083: 29,751 blocks.
    assert made.blocks.low <= 29751 <= made.blocks.high
    assert made.provenance["weights"] == made.provenance["non_torch"] == "given"
    assert planned(given=Given(num_gpu_blocks=123), max_model_len=1024).tokens == Span.exactly(123 * 16)


def test_context_parallel_ranks_share_the_tokens_of_a_request():
    alone = planned(name="deepseek-v2-lite", tensor_parallel=4)
    shared = planned(name="deepseek-v2-lite", tensor_parallel=4, decode_context_parallel=4)
    assert shared.tokens.best == 4 * alone.tokens.best


def test_data_parallel_attention_multiplies_the_pool_of_a_latent_model():
    alone = planned(name="deepseek-v2-lite", tensor_parallel=4)
    split = planned(name="deepseek-v2-lite", tensor_parallel=4, data_parallel=4, attention_data_parallel=True)
    # Each rank holds attention whole, so a little less is left of each.
    assert 3.5 * alone.tokens.best < split.tokens.best < 4 * alone.tokens.best


def test_adapters_and_a_draft_model_take_memory():
    base = planned().tokens.best
    assert planned(lora_slots=4, lora_rank=64).tokens.best < base
    assert planned(draft=model("llama-3.2-1b"), draft_tokens=3).tokens.best < base


@pytest.mark.parametrize(
    ("asked", "tokens", "shared", "kind"),
    [
        ({}, 4000, 0, "representation"),
        ({}, 20, 0, "organisation"),
        ({"block_size": 256}, 600, 0, "organisation"),
        ({}, 4000, 2000, "reuse"),
        ({"name": "gpt-oss-20b", "scheme": scheme("mxfp4")}, 4000, 0, "organisation"),
    ],
)
def test_what_presses_is_bytes_or_tails_or_repetition(asked, tokens, shared, kind):
    found = pressure(planned(**asked), request_tokens=tokens, shared_tokens=shared)
    assert found.kind == kind
    assert 0 <= found.lost_share <= 1


def test_a_pool_that_is_given_and_empty_is_no_matter_of_the_weights():
    reason = planned(given=Given(num_gpu_blocks=0)).verdict.reason
    assert reason == "the pool that is given holds not one block"


def test_weights_that_nobody_published_are_asked_for():
    with pytest.raises(InputError, match=r"qwen3\.5-4b: nobody published its weights.*give --weights-gib"):
        planned("qwen3.5-4b", max_model_len=8192)
    assert planned("qwen3.5-4b", max_model_len=8192, given=Given(weights=Span.exactly(9 * GIB))).verdict.runs


def test_llama_cpp_takes_the_context_and_leaves_the_rest():
    made = planned(engine="llama.cpp", scheme=scheme("q4_k_m"), max_model_len=8192)
    assert made.tokens.best == 8192
    assert made.stage.kv.best == made.kv_taken_bytes == 8192 * 131072
    assert "KV self size = 1024.00 MiB" in made.lines[0]


def test_the_source_of_non_torch_memory_names_the_starts():
    assert planned().provenance["non_torch"].endswith("logged starts: vllm@0.19 on H100-SXM (8)")
    assert planned(enforce_eager=True).provenance["cuda_graphs"] == "none are captured"


def test_a_plan_states_how_far_its_tokens_are_expected_to_be_off():
    roomy = record(planned())["expected_error"]
    assert 0 < roomy["kv_tokens_median"] < roomy["kv_tokens_p90"]
    assert "planned from model, GPU and flags" in roomy["basis"]
    tight = record(planned(card="RTX 4090", max_model_len=8192))["expected_error"]
    assert tight["kv_tokens_p90"] > roomy["kv_tokens_p90"]
    assert "under 40% of the card" in tight["basis"]
    known = record(planned(given=Given(kv_memory=Span.exactly(20 * GIB))))["expected_error"]
    assert known["kv_tokens_p90"] < roomy["kv_tokens_p90"]
