"""`paged` with `prefix_caching`, `radix`, and `workload.prefix` in a scenario, and what does not go along."""

from typing import Any

import pytest

from kvsim import Scenario
from kvsim.errors import InputError
from kvsim.memory.paged import PagedAllocator
from kvsim.memory.prefix import PrefixAllocator
from kvsim.memory.radix.allocator import RadixAllocator
from kvsim.memory.radix.tree import RadixTree
from kvsim.scenario.build import build

TRAFFIC = {"rate": "4/s", "requests": 30, "prompt_tokens": 700, "output_tokens": 40}
CACHED = {"name": "paged", "prefix_caching": True}


def scenario(**changes: Any) -> Scenario:
    data = {"model": "llama-3.1-8b", "gpu": "H100", "pool": {"tokens": 8000}, "workload": TRAFFIC, "allocator": CACHED}
    return Scenario.from_dict(data | changes, name="here")


def test_prefixes_are_cached_where_the_scenario_says_so_and_not_by_the_profile() -> None:
    allocator = build(scenario(), 0).scheduler.allocator
    assert isinstance(allocator, PrefixAllocator)
    assert (allocator.block_size, allocator.pool_slots, allocator.caches) == (16, 8000, True)
    plain = scenario(allocator="paged")
    assert isinstance(build(plain, 0).scheduler.allocator, PagedAllocator)
    said = plain.resolved()["allocator.prefix_caching"]
    assert said == {"value": False, "source": "profile vllm@0.33-sync"}


def test_the_block_table_is_read_as_in_paged() -> None:
    assert build(scenario(), 0).block_size == build(scenario(allocator="paged"), 0).block_size == 16


def test_radix_is_a_name_with_a_page_size_and_a_policy_of_eviction() -> None:
    plain = build(scenario(allocator="radix"), 0)
    allocator = plain.scheduler.allocator
    assert isinstance(allocator, RadixAllocator)
    assert isinstance(allocator.tree, RadixTree)
    assert (allocator.page_size, allocator.tree.eviction, allocator.caches, allocator.pool_slots) == (
        1,
        "lru",
        True,
        8000,
    )
    other = build(scenario(allocator={"name": "radix", "page_size": 64, "eviction": "slru"}), 0).scheduler.allocator
    assert isinstance(other, RadixAllocator)
    assert isinstance(other.tree, RadixTree)
    assert (other.page_size, other.tree.eviction, other.pool_slots) == (64, "slru", 8000)


def test_a_pool_of_blocks_has_as_many_slots_for_radix_as_for_paged() -> None:
    sizes = [
        build(scenario(allocator=name, pool={"blocks": 500}), 0).scheduler.allocator.pool_slots
        for name in ("paged", "radix")
    ]
    assert sizes == [8000, 8000]


def test_single_slots_are_read_as_quickly_as_the_blocks_of_the_profile() -> None:
    paged = build(scenario(allocator="paged"), 0)
    pages = {size: build(scenario(allocator={"name": "radix", "page_size": size}), 0) for size in (1, 16, 64)}
    assert pages[1].timing.decode(8) == pages[16].timing.decode(8) == paged.timing.decode(8)
    assert pages[64].timing.decode(8) == build(
        scenario(allocator={"name": "paged", "block_size": 64}), 0
    ).timing.decode(8)
    told = "charged as for blocks of 16"
    assert [any(told in line for line in pages[size].not_modelled) for size in (1, 16, 64)] == [True, False, False]
    assert any("SGLang's scheduling" in line for line in pages[1].not_modelled)


def test_requests_begin_with_the_system_prompt() -> None:
    traffic = TRAFFIC | {"prefix": {"tokens": 512, "groups": 2}}
    contents = [request.content for request in build(scenario(workload=traffic), 0).workload]
    assert all(content is not None and content.runs[0].tokens == 512 for content in contents)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"engine": {"scheduler": "prefill-first"}}, "allocator.prefix_caching: true is on, but the prefill-first"),
        ({"engine": "static", "allocator": CACHED}, "allocator.prefix_caching: true is on, but the static"),
        ({"engine": {"victim": "largest"}}, "engine.victim: largest others would find blocks that were never"),
        ({"workload": TRAFFIC | {"samples": 2, "beam": {"turnover": 0.1}}}, "paged without prefix_caching"),
        ({"workload": TRAFFIC | {"prefix": {"tokens": 700}}}, "give at most 699, or give longer prompts"),
        (
            {"workload": TRAFFIC | {"prompt_tokens": 1, "prefix": {"tokens": 9}}},
            "leave workload.prefix out, or give longer prompts",
        ),
        ({"workload": TRAFFIC | {"prefix": {}}}, "workload.prefix.tokens: is missing"),
        ({"workload": {"trace": "azure-conv-2023", "prefix": {"tokens": 9}}}, "a trace brings its own"),
        ({"allocator": {"name": "reserve", "prefix_caching": True}}, "prefix_caching"),
        (
            {"allocator": "radix", "engine": {"scheduler": "prefill-first"}},
            "allocator: radix finds the beginnings of prompts computed, but the prefill-first scheduler computes every "
            "prompt whole; set engine.scheduler: continuous, or use allocator: paged",
        ),
        ({"allocator": "radix", "engine": "static"}, "but the static scheduler"),
        (
            {"allocator": "radix", "workload": TRAFFIC | {"samples": 2, "beam": {"turnover": 0.1}}},
            "workload.beam: is given, but its candidates fork, which only allocator paged without prefix_caching can",
        ),
        ({"allocator": {"name": "radix", "page_size": 0}}, "allocator.page_size: 0 is below 1"),
        ({"allocator": {"name": "radix", "eviction": "clock"}}, "allocator.eviction: clock is"),
        ({"allocator": {"name": "radix", "block_size": 16}}, "allocator.block_size"),
    ],
)
def test_what_does_not_go_together_is_said(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        scenario(**changes)
    assert message in str(error.value)


@pytest.mark.parametrize("engine", ["vllm@0.33-sync", "sglang@0.5.23"])
def test_a_pool_of_less_than_a_page_is_refused_where_it_is_given(engine: str) -> None:
    with pytest.raises(InputError, match=r"here: pool\.tokens: allocator radix: pool_slots is 9; the pool must hold"):
        build(scenario(engine=engine, allocator={"name": "radix", "page_size": 16}, pool={"tokens": 9}), 0)


def test_nobody_but_blocks_of_unknown_victims_is_refused() -> None:
    """The tree takes in what is computed, not what is planned, so that any victim will do."""
    assert scenario(allocator="radix", engine={"victim": "largest"}).settings.engine.victim == "largest"
