"""Whole runs by the engines' own schedulers: a step is one step late, and what they cache is found again."""

from typing import Any

import pytest

from kvsim.scenario import Scenario
from kvsim.study.single import run

SHARED = {"tokens": 512, "groups": 2}
TRAFFIC = {"rate": "20/s", "requests": 60, "prompt_tokens": 700, "output_tokens": 40, "prefix": SHARED}


def result(engine: Any, **changes: Any) -> Any:
    data = {"model": "llama-3.1-8b", "gpu": "RTX 4090", "pool": {"tokens": 20_000}, "workload": TRAFFIC}
    return run(Scenario.from_dict(data | {"engine": engine} | changes, name="here"), check=True)


def test_vllm_with_one_batch_in_flight_is_the_batch_scheduler() -> None:
    ours = result({"profile": "vllm@0.33", "async_scheduling": False})
    theirs = result("vllm@0.33-sync", allocator={"name": "paged", "prefix_caching": True})
    assert ours.requests.equals(theirs.requests)
    assert ours.steps.equals(theirs.steps)


def test_a_request_alone_takes_as_many_steps_and_one_more_row_where_its_end_is_not_foreseen() -> None:
    """What is planned ahead of an end computes in vain; with `max_tokens` the end is foreseen."""
    alone = TRAFFIC | {"requests": 1}
    sync = result("vllm@0.33-sync", workload=alone)
    ended, foreseen = (
        result("vllm@0.33", workload=alone | limit) for limit in ({}, {"max_tokens": {"times_output": 1}})
    )
    for made in (ended, foreseen):
        assert made.requests.e2e_s.tolist() == sync.requests.e2e_s.tolist()
    assert foreseen.metrics["padding_tokens"] == 0


def test_with_two_in_flight_whoever_comes_waits_for_a_step_that_is_planned_already() -> None:
    pair = {"rate": "50/s", "requests": 2, "prompt_tokens": 700, "output_tokens": 400}
    sync, ahead = result("vllm@0.33-sync", workload=pair), result("vllm@0.33", workload=pair)
    assert ahead.requests.ttft_s[1] > sync.requests.ttft_s[1]


@pytest.mark.parametrize("engine", ["vllm@0.33", "sglang@0.5.23", "trtllm@1.0", "trtllm@1.0-max-utilization"])
def test_every_engine_serves_all_and_finds_the_system_prompts(engine: str) -> None:
    made = result(engine, workload=TRAFFIC | {"max_tokens": 60})
    assert made.metrics["finished"] == 60
    assert 0.6 < made.metrics["hit_rate"] < 0.74
    assert sum(made.metrics["mean_share"].values()) == pytest.approx(1)


def test_what_is_left_out_of_a_tree_under_another_scheduler_is_not_left_out_under_its_own() -> None:
    said = {engine: result(engine, allocator="radix").not_modelled for engine in ("vllm@0.33-sync", "sglang@0.5.23")}
    assert [any("SGLang's scheduling" in one for one in sentences) for sentences in said.values()] == [True, False]
