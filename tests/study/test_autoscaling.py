"""Fleets that grow and shrink: by the rule, after the time it takes, and the same whether steps are leapt or not."""

import pytest

from kvsim import Scenario, run
from kvsim.engine.replica import Replica
from kvsim.errors import InputError
from kvsim.scenario.build import build
from kvsim.study.fleet import _simulate

BURST = {"process": "stages", "stages": [
    {"duration": "20s", "rate": "1/s"}, {"duration": "50s", "rate": "12/s"}, {"duration": "100s", "rate": "1/s"},
]}  # fmt: skip


def scenario(router="least-requests", **changes):
    rule = {
        "metric": "kv_use", "target": 0.4, "min_replicas": 1, "interval": "2s", "start_up": "5s", "settle": "15s",
    } | changes.pop("rule", {})  # fmt: skip
    data = {
        "model": "llama-3.1-8b",
        "gpu": "RTX 4090",
        "pool": {"tokens": 8000},
        "engine": "vllm@0.33-sync",
        "fleet": {"replicas": 6, "router": router, "autoscale": rule},
        "workload": {
            "arrivals": BURST,
            "requests": 700,
            "prompt_tokens": {"distribution": "exponential", "mean": 500, "max": 3000},
            "output_tokens": {"distribution": "exponential", "mean": 80, "max": 600},
        },
    }
    return Scenario.from_dict(data | changes, name="here")


def log_of(case):
    return _simulate(build(case, 0), case, range(6), None, False, True, None, None)


def test_a_fleet_grows_under_a_burst_and_shrinks_after_it():
    changes = log_of(scenario()).changes
    most = max(change.ready for change in changes)
    assert changes[0].ready == 1
    assert most >= 4
    assert changes[-1].ordered < most
    grown = next(change.time_ps for change in changes if change.ready == most)
    assert 20 < grown / 1e12 < 75


def test_a_replica_takes_requests_once_it_has_started():
    changes = log_of(scenario()).changes
    for now in changes:
        known = [change.ordered for change in changes if change.time_ps <= now.time_ps - 5 * 10**12]
        # All that are ready now were ordered at least the start-up ago, but for those that are let go and come back.
        assert now.ready <= max(known, default=1)


def test_whoever_is_let_go_serves_to_the_end_and_is_paid_for_until_then():
    result = run(scenario(), check=True)
    assert result.metrics["finished"] == 700
    paid = result.replicas.paid_s
    end_s = result.metrics["simulated_s"]
    assert paid[0] == pytest.approx(end_s)
    assert (paid.diff().dropna() <= 0).all()
    assert paid.sum() < 0.6 * 6 * end_s
    served = result.replicas.finished
    assert (served[paid == 0] == 0).all()


def test_a_fleet_that_scales_is_slower_than_all_its_replicas_and_costs_less():
    scaled = run(scenario())
    whole = run(scenario(rule={"min_replicas": 6}))
    assert whole.replicas.paid_s.sum() == pytest.approx(6 * whole.metrics["simulated_s"])
    assert scaled.metrics["ttft_s"]["p99"] > whole.metrics["ttft_s"]["p99"]


@pytest.mark.parametrize(
    ("router", "rule"),
    [("least-requests", {}), ("least-kv", {"metric": "waiting", "target": 2}), ("session-affinity", {"target": 0.2})],
)
def test_leaping_is_stepping_while_a_fleet_scales(router, rule):
    leaping, stepping = (run(scenario(router, rule=rule), stepwise=one) for one in (False, True))
    assert leaping.requests.equals(stepping.requests)
    assert leaping.summary == stepping.summary


def test_the_queue_can_be_what_a_fleet_scales_by():
    changes = log_of(scenario(rule={"metric": "waiting", "target": 1})).changes
    assert max(change.ready for change in changes) > 1


def test_a_run_ends_when_its_requests_do_however_often_somebody_looks():
    result = run(scenario(horizon="30s"))
    assert result.metrics["simulated_s"] <= 30
    short = run(scenario(workload={"rate": "1/s", "requests": 3, "prompt_tokens": 9, "output_tokens": 9}))
    assert short.metrics["simulated_s"] < 30


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"min_replicas": 7}, "more than fleet.replicas, 6"),
        ({"target": 1.5}, "more than the whole pool"),
        ({"target": 0}, "target"),
        ({"metric": "load"}, "metric"),
    ],
)
def test_a_rule_that_cannot_be_is_told(rule, said):
    with pytest.raises(InputError, match=said):
        scenario(rule=rule)


def test_the_share_of_a_pool_that_is_none_cannot_be_what_a_fleet_scales_by():
    with pytest.raises(InputError, match=r"fleet\.autoscale\.metric: kv_use is the share of a pool.*write waiting"):
        scenario(allocator="no-cache")
    scenario(allocator="no-cache", rule={"metric": "waiting", "target": 4})


CACHED = {"allocator": {"name": "paged", "prefix_caching": True}}
SHARED = {"prefix": {"tokens": 200, "groups": 4}}


def cached(router="least-requests", **changes):
    given = scenario(router, **CACHED, **changes).to_dict()
    given["workload"] |= SHARED
    return Scenario.from_dict(given, name="here")


@pytest.mark.parametrize("engine", ["vllm@0.33-sync", "vllm@0.33"])
def test_whoever_was_let_go_starts_again_with_an_empty_cache(engine, monkeypatch):
    again = {"process": "stages", "stages": [
        {"duration": "50s", "rate": "12/s"}, {"duration": "100s", "rate": "1/s"}, {"duration": "50s", "rate": "12/s"},
    ]}  # fmt: skip
    started = []
    start_up = Replica.start_up

    def noted(self):
        start_up(self)
        started.append((self._number, self.allocator.usage().cached, self.recording.memory.steps))

    monkeypatch.setattr(Replica, "start_up", noted)
    case = cached(engine=engine).to_dict()
    case["workload"] |= {"arrivals": again, "requests": 1200}
    result = run(Scenario.from_dict(case, name="here"), check=True)
    assert any(steps for _, _, steps in started), "somebody starts again who has served before"
    assert not any(slots for _, slots, _ in started)
    assert result.metrics["hit_tokens"] > 0


@pytest.mark.parametrize(("router", "engine"), [("least-requests", "vllm@0.33"), ("prefix-aware", "vllm@0.33-sync")])
def test_leaping_is_stepping_while_replicas_lose_their_caches(router, engine):
    case = cached(router, engine=engine)
    leaping, stepping = (run(case, stepwise=one, check=True) for one in (False, True))
    assert leaping.requests.equals(stepping.requests)
    assert leaping.summary == stepping.summary


def test_what_a_replica_leaves_behind_is_not_cached_while_it_is_off():
    shares = run(cached()).replicas.cached_share
    assert shares[0] > 3 * shares[5]
