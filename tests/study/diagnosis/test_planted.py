"""Where the answer is known beforehand, the diagnosis finds it, and the cure does what it must."""

import json
from functools import cache

import pytest

from kvsim import Scenario, run
from kvsim.catalog.footprint import Footprint
from kvsim.catalog.models import model
from kvsim.errors import InputError
from kvsim.study.diagnosis import diagnose
from kvsim.study.diagnosis.diagnose import Numbers
from tests.study.diagnosis.conftest import scenario, workload


@cache
def diagnosed(text):
    return diagnose(Scenario.from_dict(json.loads(text)))


def found_in(data):
    """Each scenario is diagnosed once, whoever looks at it."""
    return diagnosed(json.dumps(data))


def cure(found, name):
    [one] = [one for one in found.tried if one.cure.name == name]
    return one.numbers


def test_reserving_the_limit_is_organisation_and_paging_brings_waste_to_near_zero(planted):
    found = found_in(planted["organisation"])
    assert found.dominant == "organisation"
    assert found.pressures.organisation > 0.9
    assert found.best_of_dominant.cure.name == "paged"
    # At most the last block of a request of 200 tokens and more, where it was nearly everything.
    assert cure(found, "paged").waste_share < 16 / 216
    assert cure(found, "paged").mean_running > 3 * found.before.mean_running


def test_one_system_prompt_without_caching_in_a_full_pool_is_reuse(planted):
    found = found_in(planted["reuse"])
    assert found.dominant == "reuse"
    # All 60 prompts have it, and only the first must compute it: 1,024 of 1,100 tokens, 64 whole blocks.
    assert found.pressures.unbounded_hit_rate == pytest.approx(59 * 1024 / (60 * 1100))
    assert found.pressures.hit_rate is None
    assert found.best_of_dominant.cure.pressure == "reuse"
    assert cure(found, "prefix caching").ttft_p99_s < found.before.ttft_p99_s / 2


def test_a_full_pool_of_blocks_that_share_nothing_is_representation_and_fp8_halves_the_bytes(planted):
    found = found_in(planted["representation"])
    assert found.dominant == "representation"
    assert found.pressures.representation > 0.9
    assert found.pressures.reuse == 0
    assert found.shortage.preemptions or found.shortage.blocked["capacity"]
    shape = model("llama-3.1-8b")
    assert found.pressures.kv_bytes_per_token == 2 * Footprint(shape, kv_dtype="fp8").kv_bytes_per_token
    assert cure(found, "fp8 KV").pool_tokens == 2 * found.before.pool_tokens
    assert found.best_of_dominant.cure.name == found.best.cure.name == "fp8 KV"
    assert cure(found, "fp8 KV").ttft_p99_s < found.before.ttft_p99_s


def test_a_pool_that_is_never_full_presses_on_nobody(planted):
    found = found_in(planted["none"])
    assert found.dominant is None
    assert not found.shortage.any
    assert found.limits.limit == "low load"
    assert found.limits.waiting_share < 0.05


def test_a_run_in_which_nothing_happens_has_no_pressure():
    found = found_in(scenario(horizon="1us", workload=workload(rate="1/h", requests=1)))
    assert found.dominant is None
    assert found.limits.limit == "nothing ran"
    assert found.pressures.representation is None
    assert found.best is None


def test_where_as_many_run_as_may_the_batch_limits():
    found = found_in(scenario(engine={"profile": "vllm@0.33-sync", "max_num_seqs": 2}))
    assert found.dominant is None
    assert found.limits.limit == "batch limit"
    assert found.limits.batch_full_share > 0.5


def test_where_requests_wait_for_a_place_in_a_step_compute_limits():
    engine = {"profile": "vllm@0.33-sync", "max_num_batched_tokens": 64, "max_num_seqs": 64, "max_model_len": 4096}
    found = found_in(scenario(engine=engine, pool={"tokens": 65536}))
    assert (found.dominant, found.limits.limit) == (None, "compute")
    assert found.limits.waiting_share > 0.5


def test_a_cache_that_loses_what_is_wanted_again_is_short_of_reuse_though_nobody_waits_for_room():
    prefix = {"tokens": 1024, "groups": 6, "theta": 0}
    found = found_in(
        scenario(
            pool={"tokens": 4096},
            allocator={"name": "paged", "prefix_caching": True},
            workload=workload(rate="0.5/s", requests=30, prefix=prefix, prompt_tokens=1100, output_tokens=5),
        )
    )
    assert not found.shortage.of_live_kv
    assert found.shortage.regret_rate > 0.01
    assert found.dominant == "reuse"
    assert found.pressures.unbounded_hit_rate > found.pressures.hit_rate


@pytest.mark.parametrize("name", ["organisation", "reuse", "representation", "none"])
def test_the_three_pressures_are_shares_of_the_slots_taken_and_add_up(planted, name):
    pressures = found_in(planted[name]).pressures
    shares = (pressures.representation, pressures.organisation, pressures.reuse)
    assert sum(shares) == pytest.approx(1)
    assert all(0 <= share <= 1 for share in shares)


@pytest.mark.parametrize("name", ["organisation", "reuse", "representation"])
def test_each_cure_is_the_changed_scenario_run_directly_with_the_same_seed(planted, name):
    data = planted[name]
    given = Scenario.from_dict(data)
    found = diagnose(given, seed=5)
    by_hand = {
        "fp8 KV": {"model": {"name": data["model"], "kv_dtype": "fp8"}, "pool": {"tokens": 2 * data["pool"]["tokens"]}},
        "paged": {"allocator": {"name": "paged", "prefix_caching": False}},
        "blocks of 1": {"allocator": {"name": "paged", "block_size": 1}},
        "prefix caching": {"allocator": {"name": "paged", "block_size": 16, "prefix_caching": True}},
        "paged, prefix caching": {"allocator": {"name": "paged", "prefix_caching": True}},
        "radix tree": {"allocator": {"name": "radix"}},
    }
    assert len(found.cured) >= 4
    # All are measured to their last finish.
    window = {"window": {"until": "last_finish"}}
    for one in found.cured:
        changed = Scenario.from_dict({**data, **by_hand[one.cure.name], **window})
        assert one.numbers == Numbers.of(run(changed, seed=5).metrics)
    assert found.before == Numbers.of(run(Scenario.from_dict({**data, **window}), seed=5).metrics)


@pytest.mark.parametrize("name", ["organisation", "reuse", "representation", "none"])
def test_rates_are_over_the_whole_run_so_that_nobody_who_takes_in_more_at_once_has_finished_fewer(planted, name):
    found = found_in(planted[name])
    metrics = found.result.metrics
    assert metrics["window_s"][1] == metrics["simulated_s"]
    assert all(one.cure.changes["window.until"] == "last_finish" for one in found.tried)
    assert all(one.numbers.requests_per_s > 0 for one in found.tried)
    assert found.before.requests_per_s == pytest.approx(metrics["finished"] / (metrics["simulated_s"] - _first(found)))


def _first(found):
    """The measured time begins with the first arrival."""
    return found.result.metrics["window_s"][0]


def test_where_only_the_queue_is_measured_a_run_without_one_has_no_numbers_and_a_note():
    found = found_in(
        scenario(
            allocator={"name": "reserve"}, window={"until": "saturated"}, workload=workload(rate="2/s", requests=20)
        )
    )
    assert found.yardstick.rate is None
    assert found.yardstick.gain(found.before) is None
    assert any("window.until is saturated" in note for note in found.notes)


@pytest.mark.slow
def test_it_is_the_same_on_any_number_of_processes(planted):
    given = Scenario.from_dict(planted["organisation"])
    one, two = diagnose(given), diagnose(given, jobs=2)
    assert one.tried == two.tried
    assert one.pressures == two.pressures


def test_a_cure_that_the_engine_cannot_have_says_why():
    found = found_in(scenario(engine={"profile": "vllm@0.2", "max_model_len": 4096}))
    refused = {one.cure.name: one.error for one in found.refused}
    assert "the prefill-first scheduler computes every prompt whole" in refused["prefix caching"]
    assert found.pressures.unbounded_hit_rate is None


def test_a_pool_of_so_many_blocks_keeps_its_bytes_under_every_cure():
    found = found_in(scenario(pool={"blocks": 100}, workload=workload(requests=5)))
    assert cure(found, "fp8 KV").pool_tokens == 3200
    assert cure(found, "blocks of 1").pool_tokens == 1600
    assert cure(found, "radix tree").pool_tokens == 1600


def test_the_yardstick_holds_everybody_whatever_the_allocator_takes():
    for allocator in (
        {"name": "reserve", "fit": "buddy"},
        {"name": "contiguous", "growth": "double"},
        {"name": "virtual"},
    ):
        found = found_in(scenario(allocator=allocator, workload=workload(requests=20)))
        assert found.yardstick.preemptions == 0
        assert found.yardstick.mean_running >= found.before.mean_running


def test_without_kv_there_is_nothing_to_diagnose():
    with pytest.raises(InputError, match="keeps no KV"):
        found_in(scenario(allocator={"name": "no-cache"}))
