"""Engines that follow their requests one by one: how a scenario names them, and what they cannot be told."""

from typing import Any

import pytest

from kvsim.errors import InputError
from kvsim.memory.radix.interface import NoTree
from kvsim.scenario import Scenario
from kvsim.scenario.build import build
from kvsim.scheduling.continuous import ContinuousScheduler
from kvsim.scheduling.sglang.serving import SglangServing
from kvsim.scheduling.vllm.serving import VllmScheduler

TRAFFIC = {"rate": "4/s", "requests": 20, "prompt_tokens": 600, "output_tokens": 40}

PAGES = {"name": "radix", "page_size": 16}


def scenario(**changes: Any) -> Scenario:
    data = {"model": "llama-3.1-8b", "gpu": "RTX 4090", "pool": {"tokens": 8_000}, "workload": TRAFFIC}
    return Scenario.from_dict(data | changes, name="here")


def scheduler(**changes: Any) -> Any:
    return build(scenario(**changes), 0).scheduler


def test_vllm_plans_a_step_while_the_one_before_it_is_in_flight_and_caches_prefixes() -> None:
    made = scheduler(engine="vllm@0.33")
    assert isinstance(made, VllmScheduler)
    assert (made.depth, made.rules.async_scheduling, made.blocks.ahead, made.blocks.caches) == (2, True, 1, True)


def test_vllm_can_wait_for_each_result_serve_by_priority_and_cache_nothing() -> None:
    rules = {"async_scheduling": False, "policy": "priority", "prefill_schedule_interval": 4, "max_num_seqs": 7}
    made = scheduler(engine={"profile": "vllm@0.33"} | rules, allocator={"name": "paged", "prefix_caching": False})
    assert (made.depth, made.blocks.caches) == (1, False)
    assert (made.rules.policy, made.rules.prefill_schedule_interval, made.rules.max_num_seqs) == ("priority", 4, 7)


def test_freed_blocks_may_queue_as_they_did_before_may_2026() -> None:
    for profile in ("vllm@0.33", "vllm@0.33-sync"):
        new, old = (
            scheduler(engine=profile, allocator={"name": "paged", "prefix_caching": True} | queue).allocator.pool
            for queue in ({}, {"free_queue": "tail"})
        )
        for pool, next_block in ((new, 1), (old, 2)):
            pool.free(pool.take(1))
            assert pool.take(1) == [next_block]


def test_sglang_overlaps_and_keeps_a_tree_of_single_slots() -> None:
    made = scheduler(engine="sglang@0.5.23")
    assert isinstance(made, SglangServing)
    assert (made.depth, made.settings.overlap, made.books.page_size) == (2, True, 1)
    assert made.settings.chunked_prefill_size == 8192


def test_sglang_takes_its_own_flags() -> None:
    flags = {"policy": "lpm", "mixed_chunk": True, "max_prefill_tokens": 900, "schedule_conservativeness": 0.5}
    tree = {"name": "radix", "page_size": 16, "eviction": "lfu", "prefix_caching": False}
    made = scheduler(engine={"profile": "sglang@0.5.23", "chunked_prefill": False} | flags, allocator=tree)
    settings = made.settings
    assert isinstance(made.books.tree, NoTree)
    assert (made.books.page_size, made.books.pool_slots, made.books.caches) == (16, 8_000, False)
    assert (settings.schedule_policy, settings.enable_mixed_chunk, settings.chunked_prefill_size) == ("lpm", True, None)
    assert (settings.max_prefill_tokens, settings.schedule_conservativeness) == (900, 0.5)


@pytest.mark.parametrize(("name", "preemption"), [("trtllm@1.0", "never"), ("trtllm@1.0-max-utilization", "recompute")])
def test_tensorrt_llm_admits_what_fits_to_the_end_or_what_fits_now(name: str, preemption: str) -> None:
    made = scheduler(engine=name)
    assert isinstance(made, ContinuousScheduler)
    assert (made.preemption, made.allocator.block_size, made.allocator.caches) == (preemption, 32, True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"engine": "vllm@0.33", "allocator": "radix"},
            "the vllm scheduler drives the allocator paged itself; use paged",
        ),
        ({"engine": "sglang@0.5.23", "allocator": "paged"}, "the sglang scheduler drives the allocator radix itself"),
        ({"engine": {"profile": "vllm@0.33", "preemption": "abort"}}, "engine.preemption: abort is none of the vllm"),
        ({"engine": {"profile": "sglang@0.5.23", "victim": "largest"}}, "engine.victim: largest is none of the sglang"),
        ({"engine": {"profile": "vllm@0.33", "policy": "lpm"}}, "use one of fcfs, priority"),
        ({"engine": {"profile": "sglang@0.5.23", "policy": "priority"}}, "use one of fcfs, lpm, dfs-weight"),
        ({"engine": {"profile": "vllm@0.33", "mixed_chunk": True}}, "the vllm scheduler has no such rule"),
        ({"engine": {"profile": "sglang@0.5.23", "reserve_full_isl": True}}, "the sglang scheduler has no such rule"),
        (
            {"engine": {"profile": "sglang@0.5.23", "max_num_batched_tokens": 20}, "allocator": PAGES},
            "engine.max_num_batched_tokens: 20 is not a multiple of the page of 16 slots (allocator.page_size), by "
            "which prompts are cut; set engine.max_num_batched_tokens to 32",
        ),
        (
            {"engine": "sglang@0.5.23", "allocator": PAGES | {"page_size": 24}},
            "engine.max_num_batched_tokens: 8192 is not a multiple of the page of 24 slots",
        ),
        (
            {"engine": {"profile": "vllm@0.33-sync", "mixed_chunk": True}},
            "engine.mixed_chunk: true is given, but the continuous scheduler has no such rule; leave it out",
        ),
        ({"engine": {"prefill_schedule_interval": 3}}, "the continuous scheduler has no such rule"),
        ({"engine": {"async_scheduling": True}}, "engine.async_scheduling: true is for engines whose requests"),
        ({"engine": {"policy": "priority"}}, "use a profile such as vllm@0.33 or sglang@0.5.23"),
        (
            {"engine": "vllm@0.33", "workload": TRAFFIC | {"samples": 2, "beam": {"turnover": 0.1}}},
            "without prefix_caching can, and no vllm batch",
        ),
    ],
)
def test_what_does_not_go_together_is_said(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        scenario(**changes)
    assert message in str(error.value)


def test_prompts_that_are_not_cut_need_no_whole_pages() -> None:
    engine = {"profile": "sglang@0.5.23", "max_num_batched_tokens": 20, "chunked_prefill": False}
    assert scheduler(engine=engine, allocator=PAGES).settings.chunked_prefill_size is None


@pytest.mark.parametrize("engine", ["vllm@0.33", "sglang@0.5.23", "trtllm@1.0", "vllm@0.33-sync"])
def test_a_scenario_that_is_written_out_can_be_read_again(engine: str) -> None:
    written = scenario(engine=engine).to_dict()
    assert Scenario.from_dict(written).to_dict() == written
