"""Warm starts and restarts, as a scenario says them."""

import pytest

from kvsim.errors import InputError
from kvsim.scenario import Scenario
from kvsim.study.single import run

WORKLOAD = {"rate": "0.5/s", "requests": 40, "prompt_tokens": 1000, "output_tokens": 50,
            "prefix": {"tokens": 608, "groups": 10}}  # fmt: skip


def scenario(workload=(), engine=(), **changes):
    return Scenario.from_dict({
        "model": "llama-3.1-8b", "gpu": "H100", "pool": {"tokens": 40_000},
        "engine": {"profile": "vllm@0.33", "max_model_len": 8192, **dict(engine)},
        "workload": WORKLOAD | dict(workload), **changes,
    })  # fmt: skip


def test_shared_texts_are_there_from_the_start():
    cold, warm = run(scenario()), run(scenario({"warm": {"shared": True}}))
    found = [tokens > 0 for tokens in warm.tables["requests"]["hit_tokens"]]
    assert all(found)
    assert not cold.tables["requests"]["hit_tokens"][0]
    assert warm.tables["memory"]["cached"][0] == 6080


def test_the_commonest_texts_stay_where_not_all_fit():
    popular = {"warm": {"shared": True}, "requests": 1,
               "prefix": {"tokens": 608, "groups": 1000, "theta": 1.0}}  # fmt: skip
    result = run(scenario(popular, pool={"tokens": 6400}))
    assert result.tables["memory"]["cached"][0] == 6080
    many = {"warm": {"shared": True}, "requests": 200, "prefix": {"tokens": 608, "groups": 1000, "theta": 1.5}}
    rows = run(scenario(many | {"rate": "0.2/s"}, pool={"tokens": 64_000})).tables["requests"]
    assert rows["hit_tokens"][0] or rows["hit_tokens"][1]


def test_layers_are_warmed_in_their_order_up_to_the_first_of_several_texts():
    layers = [{"name": "system", "tokens": 160}, {"name": "tenant", "tokens": 64, "texts": 3},
              {"name": "documents", "tokens": 32, "texts": 9, "count": 2}]  # fmt: skip
    workload = {key: value for key, value in WORKLOAD.items() if key != "prefix"} | {"layers": layers}
    given = {"model": "llama-3.1-8b", "gpu": "H100", "pool": {"tokens": 40_000},
             "engine": {"profile": "vllm@0.33", "max_model_len": 8192},
             "workload": workload | {"warm": {"shared": True}}}  # fmt: skip
    result = run(Scenario.from_dict(given))
    assert result.tables["memory"]["cached"][0] == 160 + 3 * 64
    assert result.tables["requests"]["hit_tokens"][0] == 224


def test_requests_from_the_front_of_the_traffic_warm_it_and_the_others_come_as_before():
    cold = run(scenario()).tables["requests"]
    warm = run(scenario({"warm": {"requests": 10}})).tables["requests"]
    assert list(warm["id"]) == list(cold["id"])[10:]
    assert list(warm["prompt_tokens"]) == list(cold["prompt_tokens"])[10:]
    last_s = cold["arrival_s"][9]
    assert list(warm["arrival_s"]) == pytest.approx([time - last_s for time in list(cold["arrival_s"])[10:]], abs=1e-9)
    assert warm["hit_tokens"][0] == 608


def test_a_trace_warms_as_well_and_a_stepwise_run_is_the_same():
    workload = {"trace": "lmcache-web-agents", "warm": {"requests": 30}, "requests": 60}
    given = {"model": "llama-3.1-8b", "gpu": "H100", "pool": {"tokens": 100_000}, "workload": workload,
             "engine": {"profile": "sglang@0.5.23", "max_model_len": 65_536, "flush": {"every": "20s"}}}  # fmt: skip
    one, other = (run(Scenario.from_dict(given), stepwise=stepwise, check=True) for stepwise in (False, True))
    assert one.metrics == other.metrics
    assert one.tables["requests"]["hit_tokens"][0] > 0
    assert any("asked for at 20.000 s" in note for note in one.notes)


def test_a_run_says_when_its_cache_was_emptied_and_when_it_was_not():
    often = {"flush": {"at": ["1ms", "30s"], "every": "25s"}}
    assert run(scenario(engine=often)).notes[-1].startswith("The prefix cache was emptied at 0.001 s, 25.")
    crowd = {"rate": "50/s", "output_tokens": 500}
    notes = run(scenario(crowd, {"flush": {"at": ["500ms"], "busy": "refuse"}})).notes
    assert "The engine did not empty its prefix cache at 0.500 s: requests were using it." in notes


@pytest.mark.parametrize(
    ("workload", "engine", "message"),
    [
        ({"warm": {}}, {}, "workload.warm: says nothing; give requests: 500, or shared: true"),
        ({"warm": {"requests": 40}}, {}, "workload.warm.requests: 40 leaves none of 40 to arrive"),
        ({"warm": {"requests": 0}}, {}, "workload.warm.requests: 0 is below 1"),
        ({}, {"flush": {}}, "engine.flush: says no time"),
        ({}, {"flush": {"at": ["0s"]}}, "engine.flush.at.1: 0s is no time at all"),
        ({}, {"flush": {"at": ["1s"], "busy": "kill"}}, "engine.flush.busy: kill is not known here"),
    ],
)
def test_each_mistake_is_told_with_its_key(workload, engine, message):
    with pytest.raises(InputError) as error:
        scenario(workload, engine)
    assert message in str(error.value)


def test_a_warm_start_without_texts_says_so():
    workload = {"warm": {"shared": True}, "trace": "azure-conv-2023"}
    with pytest.raises(InputError, match=r"workload\.warm\.shared: true is given, and no texts are shared"):
        Scenario.from_dict({"model": "llama-3.1-8b", "gpu": "H100", "workload": workload})


@pytest.mark.parametrize(
    ("workload", "engine", "key"),
    [({"warm": {"requests": 3}}, {}, r"workload\.warm"), ({}, {"flush": {"every": "9s"}}, r"engine\.flush")],
)
def test_without_a_prefix_cache_neither_means_anything(workload, engine, key):
    plain = scenario(workload, {"profile": "vllm@0.33-sync", **engine})
    with pytest.raises(InputError, match=key + ": this run has no prefix cache"):
        run(plain)


def test_a_closed_loop_has_no_front():
    with pytest.raises(InputError, match="warm: requests come off the front of traffic that knows its times"):
        run(scenario({"warm": {"requests": 3}, "sessions": {"turns": 3}}))
