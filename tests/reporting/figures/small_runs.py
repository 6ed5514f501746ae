"""Small real runs, each made once: something for every figure to show."""

from functools import cache

from kvsim import Scenario, run

PRESSED = {
    "model": "llama-3.1-8b",
    "gpu": "RTX 4090",
    "engine": {"profile": "vllm@0.33-sync", "max_model_len": 2048},
    "pool": {"tokens": 6400},
    "workload": {
        "rate": "6/s",
        "requests": 60,
        "prompt_tokens": {"distribution": "lognormal", "median": 300, "sigma": 0.7, "max": 1800},
        "output_tokens": {"distribution": "lognormal", "median": 120, "sigma": 0.6, "max": 200},
    },
    "slo": {"ttft": "2s", "tpot": "60ms"},
}
"""More traffic than the pool holds, and a prompt now and then that no request may have."""

ALLOCATORS = {
    "contiguous": "contiguous",
    "reserve": {"name": "reserve", "size": "max"},
    "paged": {"name": "paged", "block_size": 16},
}


@cache
def pressed():
    """The same traffic under three allocators; a run has addresses, preemptions and shortages of either kind."""
    results = []
    for name, allocator in ALLOCATORS.items():
        result = run(Scenario.from_dict({**PRESSED, "allocator": allocator}), addresses=True)
        result.name = name
        result.metrics["cost"] = {"usd_per_million_output_tokens": 100 / result.metrics["output_tokens_per_s"]}
        results.append(result)
    return results


@cache
def sharing():
    """One run whose prompts share system prompts of 256 tokens."""
    workload = {"rate": "3/s", "requests": 40, "prompt_tokens": 400, "output_tokens": 40}
    scenario = {
        **PRESSED,
        "pool": {"tokens": 64_000},
        "allocator": {"name": "paged", "prefix_caching": True},
        "workload": {**workload, "prefix": {"tokens": 256, "groups": 3}},
    }
    result = run(Scenario.from_dict(scenario), prompts=True)
    result.name = "cached"
    return result


def published():
    """The runs of `pressed`, with what a paper might print beside the last."""
    *others, last = pressed()
    last.published = {"mean_running": 9.5, "mean_share": {"used": 0.9, "reserved": 0.05}}
    return [*others, last]


@cache
def groups():
    """Sets of results by name: alone, side by side, with prompts."""
    contiguous, reserve, paged = published()
    return {
        "contiguous": [contiguous],
        "paged": [paged],
        "all": [contiguous, reserve, paged],
        "cached": [sharing()],
    }
