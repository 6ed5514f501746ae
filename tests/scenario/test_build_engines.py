"""Profiles bring their scheduler, kernel and allocator along; what a scenario says of them comes first."""

from typing import Any

import pytest

from kvsim import Scenario, run
from kvsim.catalog.engines import profiles
from kvsim.errors import InputError
from kvsim.memory.no_cache import NoCacheAllocator
from kvsim.memory.paged import PagedAllocator
from kvsim.memory.reserve import ReserveAllocator
from kvsim.scenario.build import Simulation, build
from kvsim.scheduling.continuous import ContinuousScheduler
from kvsim.scheduling.prefill_first import PrefillFirstScheduler
from kvsim.scheduling.static import StaticScheduler

TRAFFIC = {"rate": "4/s", "requests": 10, "prompt_tokens": 500, "output_tokens": 100}
DEFAULT = {"model": "opt-13b", "gpu": "A100-SXM-40GB", "pool": {"memory": "12GiB"}, "workload": TRAFFIC}


def scenario(**changes: Any) -> Scenario:
    workload = DEFAULT["workload"] | changes.pop("workload", {})
    return Scenario.from_dict(DEFAULT | {"workload": workload} | changes, name="here")


def built(**changes: Any) -> Simulation:
    return build(scenario(**changes), 0)


@pytest.mark.parametrize(
    ("profile", "scheduler", "allocator"),
    [
        ("vllm@0.33-sync", ContinuousScheduler, PagedAllocator),
        ("vllm@0.2", PrefillFirstScheduler, PagedAllocator),
        ("orca-max", ContinuousScheduler, ReserveAllocator),
        ("orca-pow2", ContinuousScheduler, ReserveAllocator),
        ("orca-oracle", ContinuousScheduler, ReserveAllocator),
        ("static", StaticScheduler, ReserveAllocator),
    ],
)
def test_a_profile_brings_its_scheduler_and_its_allocator(profile, scheduler, allocator):
    made = built(engine=profile).scheduler
    assert (type(made), type(made.allocator)) == (scheduler, allocator)


@pytest.mark.parametrize("size", ["max", "pow2", "oracle"])
def test_each_orca_reserves_in_its_own_way(size):
    assert built(engine=f"orca-{size}").scheduler.allocator.size == size


def test_an_allocator_of_the_scenario_beats_the_profiles():
    assert type(built(engine="orca-max", allocator="paged").scheduler.allocator) is PagedAllocator


def test_options_alone_change_the_profiles_own_allocator():
    made = built(engine="orca-pow2", allocator={"fit": "first"}).scheduler.allocator
    assert (type(made), made.size) == (ReserveAllocator, "pow2")


def test_what_the_profile_decides_is_told_as_such():
    resolved = scenario(engine="orca-pow2").resolved()
    assert resolved["allocator.size"] == {"value": "pow2", "source": "profile orca-pow2"}
    assert resolved["engine.scheduler"] == {"value": "continuous", "source": "profile orca-pow2"}
    assert resolved["engine.max_num_batched_tokens"] == {"value": 2560, "source": "profile orca-pow2"}


def test_prompts_that_come_whole_have_a_budget_for_the_longest():
    """vLLM 0.2: max(max_model_len, 2560)."""
    long = {"profile": "vllm@0.2", "max_model_len": 8192}
    assert built(model="llama-2-7b", engine={"profile": "vllm@0.2"}).scheduler.max_num_batched_tokens == 4096
    assert built(model="llama-3.1-8b", engine=long).scheduler.max_num_batched_tokens == 8192
    assert built(engine="vllm@0.2").scheduler.max_num_batched_tokens == 2560


def test_host_memory_for_swapping_is_the_profiles_or_the_scenarios():
    bytes_per_token = 819_200
    swapping = built(engine={"profile": "vllm@0.2", "preemption": "swap"}).scheduler
    assert swapping.host.slots == 4 * 2**30 // bytes_per_token
    given = built(engine={"preemption": "swap", "swap_space": "1GiB"}).scheduler
    assert given.host.slots == 2**30 // bytes_per_token
    assert built(engine="vllm@0.2").scheduler.host is None


def test_without_a_cache_there_is_no_pool():
    made = built(allocator="no-cache")
    assert type(made.scheduler.allocator) is NoCacheAllocator
    metrics = run(scenario(allocator="no-cache")).metrics
    assert metrics["pool_tokens"] is None
    assert set(metrics["mean_share"].values()) == {None}


def test_that_nothing_kept_does_not_keep_up_is_said_plainly():
    [slow] = run(scenario(allocator="no-cache", workload={"requests": 60, "rate": "8/s"})).notes
    assert slow.startswith("Without a cache the engine does not keep up with this traffic")
    assert run(scenario(allocator="no-cache", workload={"rate": "0.001/s"})).notes == []


def test_samples_are_forked_where_the_allocator_shares_and_kept_apart_elsewhere():
    shared = run(scenario(engine="vllm@0.2", workload={"samples": 4}), check=True).metrics
    apart = run(scenario(engine="orca-max", workload={"samples": 4}), check=True).metrics
    assert shared["saved_share"] > 0.5  # prompts of 500 and outputs of 100 tokens
    assert (apart["saved_share"], shared["duplicate_share"] < apart["duplicate_share"]) == (0.0, True)
    assert shared["arrived"] == shared["finished"] == 10
    assert apart["mean_waiting"] >= 0


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"engine": {"scheduler": "static", "kernel": "ragged"}}, "engine.kernel: a static batch computes every row"),
        ({"engine": {"profile": "static", "preemption": "swap", "swap_space": "1GiB"}}, "cannot be done in a static"),
        ({"engine": {"preemption": "swap"}}, "engine.swap_space: is missing: swapped requests wait in host"),
        (
            {"engine": {"profile": "vllm@0.2", "chunked_prefill": True}},
            "the prefill-first scheduler computes",
        ),
        ({"engine": "static", "allocator": "no-cache"}, "allocator: no-cache computes everything again"),
        ({"engine": {"max_num_seqs": 4}, "workload": {"samples": 5}}, "workload.samples: 5 is more than the 4 seq"),
        ({"engine": {"kernel": "flash"}}, "engine.kernel: flash is not known here; it must be ragged or padded"),
    ],
)
def test_policies_that_do_not_go_together_are_refused(changes, says):
    with pytest.raises(InputError, match="(?s)" + says.replace("(", r"\(")):
        scenario(**changes)


@pytest.mark.parametrize("profile", [known.name for known in profiles()])
def test_every_profile_runs_audited_and_leaping_is_stepping(profile):
    traffic = {"requests": 40, "rate": "3/s", "prompt_tokens": {"distribution": "exponential", "mean": 300}}
    one = scenario(engine={"profile": profile, "max_model_len": 2048}, workload=traffic)
    leaping, stepping = run(one, check=True), run(one, stepwise=True)
    assert leaping.metrics == stepping.metrics
    assert leaping.metrics["finished"] == 40
