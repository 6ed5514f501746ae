"""The judge judged by a real engine: vLLM 0.33.0's recorded scheduling with prefix caching off, step by step.

Source: the recorded runs of `engine_cases/vllm` (seeded workloads through vLLM's own scheduler and KV cache
manager, without model or GPU). Tolerance: none; every scheduled token, preemption, queue and block count.
"""

import json
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from kvsim.request import Request
from tests.naive import Engine, simulate

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif("KVSIM_DATA" not in os.environ, reason="KVSIM_DATA names no folder of recorded runs"),
]


def naive_case(recorded: dict[str, Any]) -> dict[str, Any]:
    """The recorded workload for the judge, one picosecond a step; block 0 of vLLM is the null block."""
    config = recorded["config"]
    block = config["block_size"]
    requests = [
        Request(
            id=number,
            arrival_ps=request["arrival_step"],
            prompt_tokens=sum(segment["n"] for segment in request["prompt"]),
            output_tokens=request["output_len"],
        )
        for number, request in enumerate(recorded["requests"])
    ]
    assert not config["enable_prefix_caching"]
    return {
        "requests": requests,
        "allocator": "paged",
        "pool_slots": (config["num_blocks"] - 1) * block,
        "block_size": block,
        "chunk": block,
        "watermark": config.get("watermark", 0.0),
        "reserve_full_isl": config.get("reserve_full_isl", True),
        "reference_need_slots": block,
        "max_num_seqs": config.get("max_num_seqs", 256),
        "max_num_batched_tokens": config.get("max_num_batched_tokens", 2048),
        "max_model_len": config.get("max_model_len", 8192),
        "long_prefill_token_threshold": config.get("long_prefill_token_threshold", 0),
        "chunked_prefill": config.get("enable_chunked_prefill", True),
        "horizon_ps": None,
    }


@pytest.mark.parametrize("name", ["vllm_nocache", "vllm_nocache_d1"])
def test_the_judge_schedules_every_step_as_vllm_did(name: str) -> None:
    folder = Path(os.environ["KVSIM_DATA"]) / "engine_cases" / "vllm"
    workload = json.loads((folder / f"{name}.json").read_text())
    lines = [json.loads(line) for line in (folder / f"{name}.out.jsonl").read_text().splitlines()]
    names = [request["id"] for request in workload["requests"]]
    case = naive_case(workload)
    block = case["block_size"]
    steps: list[dict[str, Any]] = []

    def watch(engine: Engine) -> None:
        steps.append(
            {
                "step": engine.now,
                "sched": [[names[life.id], tokens] for life, tokens in engine.scheduled],
                "running": [names[life.id] for life in engine.running],
                "waiting": [names[life.id] for life in engine.waiting],
                "free_after_schedule": engine.free() // block,
                "losses": {names[life.id]: list(life.losses) for life in engine.waiting},
            }
        )

    outcome = simulate(case, lambda *_: 1, watch)
    finished: dict[int, list[str]] = defaultdict(list)
    for number, ended in outcome.requests.items():
        finished[ended.end_ps - 1].append(names[number])
    expected = [line for line in lines if "step" in line]
    assert len(expected) == outcome.steps
    for got, line in zip(steps, expected, strict=True):
        keys = ("step", "sched", "running", "waiting", "free_after_schedule")
        assert {key: got[key] for key in keys} == {key: line[key] for key in keys}
        assert [got["losses"][who][-1] for who, _ in line["preempted"]] == [lost for _, lost in line["preempted"]]
        assert finished[line["step"]] == line["finished"]
    assert sum(ended.preemptions for ended in outcome.requests.values()) == sum(
        len(line["preempted"]) for line in expected
    )
