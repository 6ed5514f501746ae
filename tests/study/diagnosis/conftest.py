"""Runs with one planted pressure each, small enough to be diagnosed in a moment."""

import pytest


def scenario(**changes):
    """A base of 60 requests that arrive fast; `changes` are laid over it."""
    return {
        "name": "planted",
        "model": "llama-3.1-8b",
        "gpu": "RTX 4090",
        "engine": {"profile": "vllm@0.33-sync", "max_model_len": 4096},
        "pool": {"tokens": 16384},
        "allocator": {"name": "paged", "block_size": 16},
        "slo": {"ttft": "2s"},
        "workload": {"rate": "20/s", "requests": 60, "prompt_tokens": 200, "output_tokens": 100},
        **changes,
    }


def workload(**changes):
    return {"rate": "20/s", "requests": 60, "prompt_tokens": 200, "output_tokens": 100, **changes}


PLANTED = {
    "organisation": scenario(allocator={"name": "reserve", "size": "max"}),
    "reuse": scenario(
        pool={"tokens": 8192},
        workload=workload(prefix={"tokens": 1024}, prompt_tokens=1100, output_tokens=50),
    ),
    "representation": scenario(pool={"tokens": 8192}, workload=workload(prompt_tokens=500, output_tokens=200)),
    "none": scenario(workload=workload(rate="1/s", requests=10)),
}


@pytest.fixture
def planted():
    return PLANTED
