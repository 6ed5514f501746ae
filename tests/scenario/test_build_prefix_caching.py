"""`allocator: {name: paged, prefix_caching: true}` and `workload.prefix` in a scenario, and what does not go along."""

from typing import Any

import pytest

from kvsim import Scenario
from kvsim.errors import InputError
from kvsim.memory.paged import PagedAllocator
from kvsim.memory.prefix import PrefixAllocator
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
        ({"workload": TRAFFIC | {"prefix": {"tokens": 700}}}, "give at most 699, or longer prompts"),
        ({"workload": TRAFFIC | {"prefix": {}}}, "workload.prefix.tokens: is missing"),
        ({"workload": {"trace": "azure-conv-2023", "prefix": {"tokens": 9}}}, "a trace brings its own"),
        ({"allocator": {"name": "reserve", "prefix_caching": True}}, "prefix_caching"),
    ],
)
def test_what_does_not_go_together_is_said(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        scenario(**changes)
    assert message in str(error.value)
