"""Overheads where nobody gives them: the physics of a profiled step, and the nearest logged starts."""

import pytest

from kvsim.capacity.deployment import Deployment
from kvsim.capacity.overheads.estimate import activation, cuda_graphs, non_torch
from kvsim.capacity.overheads.releases import release
from kvsim.capacity.span import Span
from kvsim.capacity.weights.quantization import scheme
from kvsim.catalog.gpus import gpu
from kvsim.catalog.models import model


def deployment(name="llama-3.1-8b", engine="vllm@0.19", card="H100", **settings):
    one = gpu(card)
    return Deployment(
        model=model(name), engine=release(engine), gpu=one, total=Span.exactly(one.memory_bytes), **settings
    )


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("asked", "logged"),
    [
        # llm-d-incubation/llm-d-planner pull 205 and llm-d/llm-d-benchmark pull 732: peaks in GiB.
        ({}, 1.89),
        ({"dtype": "fp32"}, 2.21),
        ({"name": "gemma-7b"}, 3.63),
        ({"name": "gemma-2-27b"}, 3.66),
        ({"name": "qwen3-30b-a3b"}, 2.68),
        ({"name": "llama-4-scout", "tensor_parallel": 4}, 3.19),
        ({"name": "gpt-oss-20b", "scheme": scheme("mxfp4")}, 2.87),
        ({"engine": "vllm@0.11"}, 4.76),
        ({"name": "gpt-oss-20b", "engine": "vllm@0.11", "scheme": scheme("mxfp4")}, 7.38),
        # vllm-project/vllm pull 10511: 256 sequences.
        ({"name": "llama-3-8b", "engine": "vllm@0.6.4"}, 1.26),
        # ovg-project/kvcached pull 448.
        ({"name": "qwen2.5-0.5b", "engine": "vllm@0.24", "card": "A100-40GB"}, 0.59),
    ],
)
def test_the_activation_peak_is_what_start_ups_logged_to_a_tenth_of_a_gib(asked, logged):
    peak = activation(deployment(**asked))
    assert peak.best / 2**30 == pytest.approx(logged, abs=0.1)
    assert peak.low <= logged * 2**30 <= peak.high


def test_a_stage_that_does_not_sample_has_a_smaller_peak():
    asked = deployment(pipeline_parallel=2)
    assert activation(asked, sampler=False).best < activation(asked).best


def test_more_tokens_a_step_take_more_and_fewer_sequences_less():
    base = activation(deployment()).best
    assert activation(deployment(max_num_batched_tokens=65536)).best > base
    assert activation(deployment(max_num_seqs=64)).best < base


def test_non_torch_memory_is_that_of_the_nearest_starts():
    assert non_torch(deployment()).gib == 0.25
    assert non_torch(deployment(tensor_parallel=2)).gib == pytest.approx(2.1, abs=0.05)
    assert non_torch(deployment(engine="vllm@0.11")).gib == 0.13
    assert non_torch(deployment(card="A100-40GB", engine="vllm@0.24")).gib == 0.11


def test_a_card_that_nobody_logged_has_a_wider_spread():
    known, unknown = non_torch(deployment()), non_torch(deployment(card="L40S"))
    assert unknown.high - unknown.low > known.high - known.low


@pytest.mark.oracle
@pytest.mark.parametrize(("stages", "logged"), [(1, 0.91), (2, 0.65), (4, 0.51)])
def test_graphs_grow_with_the_layers(stages, logged):
    assert cuda_graphs(deployment(pipeline_parallel=stages)).gib == pytest.approx(logged, abs=0.01)


@pytest.mark.oracle
@pytest.mark.parametrize(("ranks", "logged"), [(2, 0.76), (4, 0.67)])
def test_and_shrink_with_the_ranks(ranks, logged):
    assert cuda_graphs(deployment(tensor_parallel=ranks)).gib == pytest.approx(logged, abs=0.03)


def test_an_eager_engine_captures_none():
    assert cuda_graphs(deployment(enforce_eager=True)) == Span.exactly(0)
