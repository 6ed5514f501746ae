"""Small runs with everything that a page shows."""

from kvsim import Scenario
from kvsim.reporting.inputs import Subject
from kvsim.study import run

HOSTILE = "<script>alert(1)</script> & 'quotes' \"more\""
HOSTILE_VARIANT = "</script><b>bold</b>" + "W" * 300

POOL_TOKENS = 2048


def small_run(name, allocator, requests=24):
    """A run of two seconds or so on a small pool, with the addresses of its slots."""
    scenario = Scenario.from_dict(
        {
            "name": name,
            "model": "llama-3.1-8b",
            "gpu": "RTX 4090",
            "engine": {"profile": "vllm@0.33-sync", "max_model_len": 512},
            "pool": {"tokens": POOL_TOKENS},
            "allocator": allocator,
            "workload": {
                "rate": "20/s",
                "requests": requests,
                "prompt_tokens": {"distribution": "uniform", "min": 20, "max": 200},
                "output_tokens": {"distribution": "uniform", "min": 10, "max": 80},
            },
        }
    )
    result = run(scenario, addresses=True)
    result.name = name
    return result


def hostile_subject():
    """Two allocators on the same traffic, under names that would break a page that does not escape them."""
    results = [
        small_run(HOSTILE_VARIANT, {"name": "reserve", "size": "max"}),
        small_run("paged", {"name": "paged", "block_size": 16}),
    ]
    return Subject(name=HOSTILE, results=results)
