"""The one engine start of a run: pool and device ledger are divided by the same plan."""

from typing import Any

import pytest

from kvsim import Scenario
from kvsim.capacity.deployment import Deployment
from kvsim.capacity.span import Span
from kvsim.catalog.engines import profile
from kvsim.scenario.build import build
from kvsim.scenario.deployment import deployment

TRAFFIC = {"rate": "4/s", "requests": 10, "prompt_tokens": 500, "output_tokens": 100}


def scenario(**changes: Any) -> Scenario:
    return Scenario.from_dict({"model": "llama-3.1-8b", "gpu": "RTX 4090", "workload": TRAFFIC} | changes, name="here")


def start(**changes: Any) -> Deployment:
    made = scenario(**changes)
    return deployment(made, profile(made.settings.engine.profile))


def test_what_the_scenario_leaves_open_is_the_profiles():
    asked = start()
    assert (asked.engine.name, asked.share, asked.sequences, asked.step_tokens) == ("vllm@0.33", 0.92, 256, 2048)
    assert (asked.longest, asked.block, asked.dtype, asked.cache_dtype, asked.scheme) == (
        131072, 16, "bf16", "bf16", None
    )  # fmt: skip


def test_prompts_that_come_whole_are_profiled_whole():
    assert start(engine={"profile": "vllm@0.2", "max_model_len": 8192}).step_tokens == 8192


def test_what_the_scenario_says_holds():
    asked = start(
        model={"name": "llama-3.1-8b", "weights_dtype": "fp16", "kv_dtype": "fp8"},
        tensor_parallel=2,
        engine={"max_model_len": 4096, "max_num_seqs": 32, "max_num_batched_tokens": 4096},
        allocator={"name": "paged", "block_size": 64},
        capacity={"gpu_memory_utilization": 0.8, "activation": "1GiB"},
    )
    assert (asked.dtype, asked.cache_dtype, asked.tensor_parallel) == ("fp16", "fp8", 2)
    assert (asked.longest, asked.sequences, asked.step_tokens, asked.block) == (4096, 32, 4096, 64)
    assert asked.share == 0.8
    assert (asked.given.activation, asked.given.non_torch) == (Span.exactly(2**30), None)


@pytest.mark.parametrize(("dtype", "scheme"), [("fp8", "fp8"), ("int8", "int8"), ("int4", "w4a16")])
def test_quantised_weights_are_a_scheme_and_the_engine_computes_in_bf16(dtype, scheme):
    asked = start(model={"name": "llama-3.1-8b", "weights_dtype": dtype})
    assert asked.dtype == "bf16"
    assert asked.scheme is not None
    assert asked.scheme.name == scheme


def test_the_ledger_and_the_pool_are_of_one_start():
    made = scenario(model={"name": "llama-3.1-8b", "weights_dtype": "fp8"}, engine={"max_model_len": 8192})
    device = build(made, 0).device
    assert device is not None
    assert device.deployment == deployment(made, profile("vllm@0.33-sync"))
    # The card's 8 %, and what is less than a block: the planned step has room, to the byte.
    ledger = device.ledger(2048, 256)
    beyond = 0.08 * ledger["card"]
    assert beyond <= ledger["left"] + 1 < beyond + 16 * 131_072 + 2


def test_a_given_pool_runs_where_no_engine_would_split_the_vocabulary():
    made = build(scenario(model="opt-13b", tensor_parallel=5, pool={"tokens": 4096}), 0)
    assert made.device is None
    assert made.scheduler.allocator.pool_slots == 4096
