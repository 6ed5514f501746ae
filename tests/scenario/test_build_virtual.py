"""`allocator: virtual` in a scenario: pages with a unit, rows that follow from the model, mapping that costs."""

from typing import Any

import pytest

from kvsim import Scenario, run
from kvsim.errors import InputError
from kvsim.memory.virtual import VirtualAllocator
from kvsim.scenario.build import Simulation, build
from tests.batches import step_of

TRAFFIC = {"rate": "4/s", "requests": 30, "prompt_tokens": 700, "output_tokens": 400}
DEFAULT = {"model": "llama-3-8b", "gpu": "H100", "pool": {"memory": "8GiB"}, "allocator": "virtual"}


def scenario(**changes: Any) -> Scenario:
    return Scenario.from_dict(DEFAULT | {"workload": TRAFFIC} | changes, name="here")


def built(**changes: Any) -> Simulation:
    return build(scenario(**changes), 0)


def allocator(**changes: Any) -> VirtualAllocator:
    made = built(**changes).scheduler.allocator
    assert isinstance(made, VirtualAllocator)
    return made


def test_a_page_is_2_mib_unless_given() -> None:
    assert scenario().settings.allocator.model_dump(mode="json") == {"name": "virtual", "page": "2MiB"}
    assert (allocator().page_tokens, allocator().row_pages) == (1024, 64)
    small = allocator(allocator={"name": "virtual", "page": "64KiB"})
    assert (small.page_tokens, small.row_pages) == (32, 64)


@pytest.mark.parametrize(
    ("pool", "slots"),
    [
        ({"memory": "8GiB"}, 64 * 1024),  # a row is 64 x 2 MiB
        ({"memory": "1000MiB"}, 7 * 1024),
        ({"blocks": 10}, 10 * 1024),
        ({"tokens": 5000}, 4 * 1024),
    ],
)
def test_a_pool_is_whole_page_rows(pool: dict[str, Any], slots: int) -> None:
    assert allocator(pool=pool).pool_slots == slots


def test_where_a_token_does_not_divide_the_page_the_pool_holds_less_than_its_bytes() -> None:
    # OPT-13B: 204 tokens a page where 204.8 would fit; 8 GiB are 51 rows of 80 x 2 MiB.
    simulation = built(model="opt-13b")
    assert simulation.scheduler.allocator.pool_slots == 51 * 204
    assert simulation.provenance["pool"].endswith("51 page rows of 204 tokens, 80 pages of 2.00 MiB each")


def test_without_a_pool_the_card_is_filled_with_rows() -> None:
    data = {key: value for key, value in DEFAULT.items() if key != "pool"} | {"workload": TRAFFIC}
    made = build(Scenario.from_dict(data, name="here"), 0)
    assert made.scheduler.allocator.pool_slots % 1024 == 0
    assert made.provenance["pool"].startswith("from the card")


def test_addresses_are_contiguous_so_that_attention_looks_up_no_blocks() -> None:
    assert built().block_size is None
    assert built().timing.decode(8) == built(allocator="contiguous").timing.decode(8)


def test_a_mapped_page_costs_the_step_40_microseconds_unless_given() -> None:
    for parameters, page_ps in (({}, 40_000_000), ({"page_map_s": 8e-6}, 8_000_000)):
        timing = built(timing=parameters).timing
        assert timing.step_ps(step_of(3, 99, [], 0, 64)) - timing.step_ps(step_of(3, 99, [], 0)) == 64 * page_ps


def test_mapping_that_takes_no_time_is_mapping_ahead() -> None:
    assert not allocator().mapped_ahead
    assert allocator(timing={"page_map_s": 0}).mapped_ahead


def test_mapping_slows_requests_down_and_changes_nothing_else_where_memory_is_ample() -> None:
    waiting, ahead = run(scenario()), run(scenario(timing={"page_map_s": 0}))
    assert waiting.metrics["finished"] == ahead.metrics["finished"] == 30
    # A prompt of 700 tokens and 399 of the 400 that follow cross one page: two rows a request, 2.56 ms each.
    gained = waiting.requests.sort_values("id").e2e_s.sum() - ahead.requests.sort_values("id").e2e_s.sum()
    assert gained >= 30 * 2 * 64 * 40e-6


def test_stepwise_and_leaping_runs_are_the_same() -> None:
    for parameters in ({}, {"page_map_s": 0}):
        one = run(scenario(timing=parameters, pool={"blocks": 12}))
        other = run(scenario(timing=parameters, pool={"blocks": 12}), stepwise=True)
        assert one.metrics == other.metrics
        assert one.metrics["preemptions"] > 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"allocator": {"name": "virtual", "page": "3MiB"}}, "allocator.page: 3MiB is no page of a GPU; write a mult"),
        ({"allocator": {"name": "virtual", "page": "4KiB"}}, "allocator.page: 4KiB is no page of a GPU"),
        ({"allocator": {"name": "virtual", "page": "2MB"}}, "allocator.page: 2MB is no page of a GPU"),
        ({"allocator": {"name": "virtual", "page": 2097152}}, "allocator.page: 2097152 has no unit"),
        ({"allocator": {"name": "virtual", "block_size": 16}}, "block_size: 16 is given for an unknown key"),
    ],
)
def test_a_page_that_cannot_be_is_refused_where_it_stands(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        scenario(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pool": {"tokens": 1000}}, "here: .*allocator virtual: pool_slots is 1000; .* page row of 1024"),
        ({"pool": {"memory": "100MiB"}}, "here: .*allocator virtual: pool_slots is 800; .* page row of 1024"),
        ({"model": "deepseek-v3.2"}, "here: .*deepseek-v3.2 keeps KV tensors of different bytes"),
    ],
)
def test_a_page_row_that_cannot_be_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        built(**changes)
