"""A small comparison for the tests of studies."""

from typing import Any

from kvsim import Scenario

DATA: dict[str, Any] = {
    "name": "small",
    "model": "llama-3.1-8b",
    "gpu": "RTX 4090",
    "pool": {"tokens": 4096},
    "engine": {"max_model_len": 512},
    "workload": {
        "rate": "4/s",
        "requests": 60,
        "prompt_tokens": {"distribution": "uniform", "min": 10, "max": 200},
        "output_tokens": {"distribution": "uniform", "min": 5, "max": 60},
    },
    "variants": {
        "blocks": {"allocator": "paged"},
        "large blocks": {"allocator": {"name": "paged", "block_size": 64}},
    },
}


def variants(**changes: Any) -> list[tuple[str, Scenario]]:
    return Scenario.from_dict({**DATA, **changes}).variants()


def traced(trace: str, **changes: Any) -> list[tuple[str, Scenario]]:
    workload = {"trace": trace, "requests": 80, "rate": "4/s"}
    engine = {"max_model_len": 16384}
    return variants(workload=workload, engine=engine, pool={"tokens": 65536}, **changes)
