"""Warm caches and emptied ones in a fleet: every replica has them, leaps are steps, and routers hear of it."""

import pytest

from kvsim import Scenario, run
from tests.study.test_fleet import scenario as plain

FLUSH = {"profile": "vllm@0.33", "flush": {"every": "2s"}}


def scenario(router, replicas=3, engine=FLUSH, **workload):
    given = plain(router, replicas, allocator={"name": "paged", "prefix_caching": True}).to_dict()
    given["engine"] |= engine
    given["workload"] |= {"warm": {"shared": True}, **workload}
    return Scenario.from_dict(given, name="here")


def test_a_fleet_of_one_is_a_run():
    one = scenario("round-robin", 1)
    alone = one.to_dict()
    del alone["fleet"]
    fleet, single = run(one), run(Scenario.from_dict(alone, name="here"))
    assert fleet.metrics == single.metrics
    assert [note for note in fleet.notes if "emptied" in note] == [note for note in single.notes if "emptied" in note]


@pytest.mark.parametrize("router", ["round-robin", "least-requests", "prefix-aware"])
def test_leaping_is_stepping(router):
    leaping, stepping = (run(scenario(router), stepwise=stepwise, check=True) for stepwise in (False, True))
    assert leaping.metrics == stepping.metrics


def test_every_replica_is_warm_from_the_start():
    rows = run(scenario("round-robin", engine={"profile": "vllm@0.33"})).requests
    assert (rows["hit_tokens"][:3] >= 128).all()


def test_a_prefix_aware_router_hears_that_caches_were_emptied():
    kept = run(scenario("prefix-aware", engine={"profile": "vllm@0.33"}, rate="1/s"))
    emptied = run(scenario("prefix-aware", rate="1/s"))
    assert emptied.metrics["hit_tokens"] < kept.metrics["hit_tokens"]
    assert emptied.metrics["arrived"] == kept.metrics["arrived"]


def test_classes_of_service_are_told_apart_in_a_fleet():
    given = scenario("round-robin", mix=[{"slo_class": "gold"}, {"slo_class": "batch"}]).to_dict()
    given["slo"] = {"classes": {"gold": {"ttft": "1h"}, "batch": {"ttft": "1ps"}}}
    found = run(Scenario.from_dict(given, name="here")).metrics["slo_classes"]
    assert (found["gold"]["met_share"], found["batch"]["met_share"]) == (1, 0)
    assert found["gold"]["arrived"] + found["batch"]["arrived"] == 90
