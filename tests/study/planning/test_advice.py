"""What binds, and what to change next: what is short by construction is what is said."""

import pytest

from kvsim import Scenario
from kvsim.study.planning.advice import advice
from kvsim.study.planning.goals import goals_of
from kvsim.study.planning.rates.screen import screen
from kvsim.study.planning.rates.sustained import tried
from tests.study.planning.small import AT, SCENARIO

WIDE = {"engine.max_num_seqs": 1000, "pool.tokens": 10**6}

CASES = [
    ({"pool.tokens": 3000}, "KV memory", "Representation: KV in fp8 (model.kv_dtype: fp8)"),
    ({"pool.tokens": 3000, "model.kv_dtype": "fp8"}, "KV memory", "More memory"),
    (
        {"pool.tokens": 12000, "model.kv_dtype": "fp8", "allocator": {"name": "reserve", "size": "max"}},
        "KV memory",
        "Organisation: blocks (allocator: paged)",
    ),
    ({"engine.max_num_seqs": 4}, "batch limit", "Organisation: raise engine.max_num_seqs"),
    (
        {
            "workload.prompt_tokens": 1500,
            "workload.output_tokens": 4,
            "engine.max_num_seqs": 1000,
            "pool.tokens": 10**6,
        },
        "compute",
        "Representation: weights in fp8",
    ),
    (
        {
            "workload.prompt_tokens": 16,
            "workload.output_tokens": 200,
            "engine.max_num_seqs": 1000,
            "pool.tokens": 10**6,
        },
        "bandwidth",
        "Representation: weights in fp8 (model.weights_dtype: fp8), with which a step reads",
    ),
]


@pytest.mark.parametrize(("changes", "binds", "next_change"), CASES)
def test_what_is_short_by_construction_is_what_binds(changes, binds, next_change):
    scenario = Scenario.from_dict(SCENARIO).changed({"workload.requests": 100, **changes}, AT)
    screened = screen(scenario)
    [trial] = tried(scenario, [2 * screened.rate_per_s], goals_of("ttft_p99<1s"), replications=1)
    found = advice(scenario, screened, trial)
    assert (found.binds, found.next_change[: len(next_change)]) == (binds, next_change)


def test_prefixes_that_many_requests_hold_are_to_be_shared():
    shared = {"prefix": {"groups": 1, "tokens": 256}}
    scenario = Scenario.from_dict(SCENARIO).changed(
        {
            "pool.tokens": 6000,
            "model.kv_dtype": "fp8",
            "workload.prefix": shared["prefix"],
            "workload.prompt_tokens": 300,
            "workload.requests": 100,
        },
        AT,
    )
    screened = screen(scenario)
    [trial] = tried(scenario, [2 * screened.rate_per_s], goals_of("ttft_p99<1s"), replications=1)
    found = advice(scenario, screened, trial)
    assert found.binds == "KV memory"
    assert found.next_change.startswith("Reuse: prefix caching (allocator.prefix_caching: true)")
