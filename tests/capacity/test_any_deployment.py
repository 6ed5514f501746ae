"""Whatever is asked: a plan that adds up, or one message."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvsim.capacity.answers.record import record
from kvsim.capacity.deployment import Deployment
from kvsim.capacity.overheads.releases import release
from kvsim.capacity.planner import plan
from kvsim.capacity.span import Span
from kvsim.capacity.weights.quantization import schemes
from kvsim.catalog.gpus import gpus
from kvsim.catalog.models import models
from kvsim.errors import InputError

ENGINES = ["vllm@0.2", "vllm@0.5.3", "vllm@0.19", "vllm@0.33", "sglang@0.5", "trtllm@1.0", "llama.cpp", "distserve"]


@given(
    shape=st.sampled_from(models()),
    card=st.sampled_from(gpus()),
    engine=st.sampled_from(ENGINES),
    settings=st.fixed_dictionaries(
        {
            "scheme": st.sampled_from([None, *schemes().values()]),
            "kv_dtype": st.sampled_from(["auto", "fp8"]),
            "tensor_parallel": st.sampled_from([1, 2, 3, 8]),
            "pipeline_parallel": st.integers(1, 4),
            "data_parallel": st.integers(1, 2),
            "attention_data_parallel": st.booleans(),
            "decode_context_parallel": st.integers(1, 2),
            "utilization": st.sampled_from([None, 0.0, 0.5, 1.0]),
            "max_model_len": st.sampled_from([None, 1, 4096, 131072]),
            "block_size": st.sampled_from([None, 1, 16, 128]),
            "max_num_seqs": st.sampled_from([None, 1, 64]),
            "draft": st.sampled_from([None, *models()[:8]]),
            "lora_slots": st.integers(0, 2),
            "used_bytes": st.sampled_from([0, 2**33]),
        }
    ),
)
def test_a_plan_adds_up_or_says_what_is_wrong(shape, card, engine, settings):
    try:
        asked = Deployment(
            model=shape, engine=release(engine), gpu=card, total=Span.exactly(card.memory_bytes), **settings
        )
        made = plan(asked)
    except InputError:
        return
    found = record(made, lengths={"mean": 700})
    json.dumps(found, allow_nan=False)
    parts = dict(found["breakdown_gib"])
    total, _ = parts.pop("total"), parts.pop("usable")
    assert sum(parts.values()) == pytest.approx(total, abs=0.002)
    low, high = found["kv_tokens_interval"]
    assert 0 <= low <= found["kv_tokens"] <= high
    assert (found["verdict"] == "fits") == (not found["reason"])
    assert not made.verdict.runs or engine == "llama.cpp" or made.concurrency.best >= 0.999 / asked.data_parallel
