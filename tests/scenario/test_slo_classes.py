"""Goals of classes of service, as a scenario says them."""

import pytest

from kvsim.errors import InputError
from kvsim.metrics.tables import Dropped
from kvsim.scenario import Scenario
from kvsim.study.single import run

BASE = {"model": "llama-3.1-8b", "gpu": "H100", "pool": {"tokens": 20_000}, "engine": {"max_model_len": 8192}}
WORKLOAD = {"rate": "8/s", "requests": 200, "prompt_tokens": 400, "output_tokens": 60}
MIX = [{"tenant": "a", "slo_class": "gold"}, {"tenant": "b", "slo_class": "batch", "weight": 3}, {"tenant": "c"}]


def scenario(classes, mix=MIX, **slo):
    return Scenario.from_dict(BASE | {"workload": WORKLOAD | {"mix": mix}, "slo": slo | {"classes": classes}})


def test_each_class_is_held_to_its_goals_and_the_others_to_the_general_ones():
    given = scenario({"gold": {"ttft": "1ps"}, "batch": {"e2e": "1h"}}, e2e="1h")
    result = run(given)
    gold, batch = result.metrics["slo_classes"]["gold"], result.metrics["slo_classes"]["batch"]
    assert gold["met_share"] == 0
    assert batch["met_share"] == 1
    rows = result.tables["requests"]
    assert list(rows["slo_class"]).count("gold") == gold["arrived"]
    assert set(zip(rows["tenant"], rows["slo_class"], strict=True)) == {("a", "gold"), ("b", "batch"), ("c", None)}
    assert Scenario.from_dict(given.to_dict()).settings == given.settings


def test_a_class_says_only_what_is_other_for_it():
    result = run(scenario({"gold": {"ttft": "10s"}}, ttft="1ps", e2e="1h"))
    assert result.metrics["slo_classes"]["gold"]["met_share"] == 1
    held = run(scenario({"gold": {"ttft": "10s"}}, ttft="1ps", e2e="1ps"))
    assert held.metrics["slo_classes"]["gold"]["met_share"] == 0


def test_pieces_that_are_given_away_leave_the_same_summary():
    given = scenario({"gold": {"ttft": "30ms"}}, e2e="1h")
    assert run(given, pieces=Dropped()).metrics == run(given).metrics


def test_a_class_that_no_client_is_of_is_a_mistake():
    with pytest.raises(InputError, match=r"slo\.classes\.gould: no kind of client.*did you mean gold"):
        scenario({"gould": {"ttft": "1s"}})
    with pytest.raises(InputError, match=r"slo\.classes\.gold: .*give slo_class to the kinds of client"):
        scenario({"gold": {"ttft": "1s"}}, mix=[{"tenant": "a"}])
    with pytest.raises(InputError, match=r"slo\.classes\.gold\.tttf"):
        scenario({"gold": {"tttf": "1s"}})


def test_the_classes_of_a_trace_are_its_own(tmp_path):
    path = tmp_path / "blis.csv"
    path.write_text(
        "request_id,tenant_id,slo_class,session_id,input_tokens,output_tokens,arrival_time_us\n"
        "1,acme,gold,s,40,4,1000000\n2,acme,,s,50,4,5000000\n"
    )
    workload = {"trace": str(path), "sessions": {}}
    given = Scenario.from_dict(BASE | {"workload": workload, "slo": {"classes": {"gold": {"e2e": "1h"}}}})
    result = run(given)
    assert result.metrics["slo_classes"]["gold"]["arrived"] == 1
    assert list(result.tables["requests"]["tenant"]) == ["acme", "acme"]
