"""A small recorded run on disk: META, requests and gauges; and its simulation, made once."""

import json

import pytest

from kvsim.scenario import Scenario
from kvsim.study import run

META = {
    "model": "meta-llama/Llama-3.1-8B",
    "vllm_version": "0.19.0",
    "engine_kwargs": {"max_num_seqs": 16, "max_num_batched_tokens": 2048, "max_model_len": 4096, "dtype": "bfloat16",
                      "kv_cache_dtype": "auto", "seed": 42},
    "kv_cache": {"num_gpu_blocks": 201, "block_size": 16, "gpu_memory_utilization": 0.9, "enable_prefix_caching": True},
    "hardware": {"device_name": "NVIDIA GeForce RTX 4090"},
}  # fmt: skip
REQUESTS = 24


def write_run(folder, meta=META):
    """META and requests that arrive ten a second; returns both paths."""
    described, requests = folder / "small_meta.json", folder / "small_requests.csv"
    described.write_text(json.dumps(meta))
    lines = ["in_len,out_len,arrival_s,first_token_s,last_token_s"]
    lines += [
        f"{200 + 7 * at},{20 + at},{at / 10},{at / 10 + 0.2},{at / 10 + 0.2 + 0.02 * (19 + at)}"
        for at in range(REQUESTS)
    ]
    requests.write_text("\n".join(lines) + "\n")
    return described, requests


@pytest.fixture(scope="session")
def result():
    """A run that fills its pool, so that requests wait and are preempted."""
    scenario = Scenario.from_dict(
        {
            "model": "llama-3.1-8b", "gpu": "RTX 4090", "engine": {"profile": "vllm@0.33", "max_num_seqs": 16},
            "pool": {"blocks": 120},
            "workload": {"rate": "20/s", "requests": 60, "prompt_tokens": 100, "output_tokens": {
                "distribution": "uniform", "min": 1, "max": 90}},
        }
    )  # fmt: skip
    return run(scenario)
