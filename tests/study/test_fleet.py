"""Fleets: one replica is a run, leaps are steps, replicas apart are replicas together, and nobody is lost."""

import json
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvsim import Scenario, run
from kvsim.errors import InputError
from kvsim.metrics.result import Result
from kvsim.metrics.tables import Dropped

STATELESS = ("round-robin", "random", "session-affinity")
STATEFUL = ("least-requests", "least-kv", "power-of-two")
PAGED = {"engine": "vllm@0.33-sync"}
CACHED = {"engine": "vllm@0.33", "allocator": {"name": "paged", "prefix_caching": True}}
RADIX = {"engine": "sglang@0.5.23", "allocator": {"name": "radix", "page_size": 16}}
SESSIONS = {
    "sessions": {"turns": {"distribution": "uniform", "min": 1, "max": 6}, "new_tokens": 120, "think": "500ms"},
}


def scenario(router="round-robin", replicas=3, **changes):
    data = {
        "model": "llama-3.1-8b",
        "gpu": "RTX 4090",
        "pool": {"tokens": 4000},
        "workload": {
            "rate": "12/s",
            "requests": 90,
            "prompt_tokens": {"distribution": "lognormal", "median": 400, "sigma": 0.7, "max": 3000},
            "output_tokens": {"distribution": "lognormal", "median": 80, "sigma": 0.6, "max": 900},
            "prefix": {"tokens": 128, "groups": 5},
        },
    }
    if replicas:
        data["fleet"] = {"replicas": replicas, "router": router}
    return Scenario.from_dict(data | changes, name="here")


def told(result):
    """All numbers of a result, but for how many rows steps make."""
    return json.dumps([result.summary, {n: list(c) for n, c in result.tables["replicas"].items()}], default=str)


@pytest.mark.parametrize("engine", [PAGED, CACHED, RADIX, {"allocator": "contiguous"}])
def test_a_fleet_of_one_is_a_run(engine):
    alone, fleet = run(scenario(replicas=None, **engine)), run(scenario(replicas=1, **engine))
    assert fleet.metrics == alone.metrics
    assert fleet.pools == alone.pools
    assert fleet.requests.equals(alone.requests)
    assert fleet.events.equals(alone.events)
    assert fleet.preemptions.equals(alone.preemptions)


@pytest.mark.parametrize(("router", "engine"), list(product(STATEFUL, (PAGED, CACHED))))
def test_leaping_is_stepping_in_a_fleet(router, engine):
    leaping, stepping = (run(scenario(router, **engine), stepwise=one, check=True) for one in (False, True))
    assert leaping.requests.equals(stepping.requests)
    assert leaping.events.equals(stepping.events)
    assert told(leaping) == told(stepping)


@pytest.mark.parametrize("replicas", [2, 5])
@pytest.mark.parametrize(("router", "engine"), list(product(STATEFUL, (PAGED, {"allocator": "contiguous"}))))
def test_leaping_is_stepping_where_clients_that_never_think_make_ties(router, engine, replicas):
    workload = {"requests": 40, "prompt_tokens": 300, "output_tokens": 60, "clients": {"count": 7}}
    case = scenario(router, replicas, **engine, pool={"tokens": 2000}, workload=workload)
    leaping, stepping = (run(case, stepwise=one, check=True) for one in (False, True))
    assert leaping.requests.equals(stepping.requests)
    assert told(leaping) == told(stepping)


@settings(max_examples=8, deadline=None)
@given(
    st.sampled_from(STATEFUL),
    st.sampled_from([PAGED, CACHED, {"allocator": "contiguous"}]),
    st.integers(2, 4),
    st.sampled_from([0, 0, 1]),
    st.integers(1000, 4000),
    st.integers(0, 10**6),
)
def test_leaping_is_stepping_whatever_comes(router, engine, replicas, warmup_s, tokens, seed):
    extra = {"window": {"warmup": f"{warmup_s}s"}} if warmup_s else {}
    workload = {
        "requests": 20,
        "sessions": {"turns": {"distribution": "uniform", "min": 1, "max": 3}, "new_tokens": 120, "think": "30ms"},
        "prompt_tokens": {"distribution": "exponential", "mean": 150, "max": 800},
        "output_tokens": {"distribution": "exponential", "mean": 30, "max": 100},
        "clients": {"count": 6},
    }
    case = scenario(router, replicas, **engine, pool={"tokens": tokens}, workload=workload, **extra)
    leaping, stepping = (run(case, seed=seed, stepwise=one, check=True) for one in (False, True))
    assert leaping.requests.equals(stepping.requests)
    assert told(leaping) == told(stepping)


@pytest.mark.parametrize("router", STATELESS)
@pytest.mark.parametrize("engine", [PAGED, CACHED])
def test_replicas_apart_are_replicas_together(router, engine):
    case = scenario(router, replicas=20, horizon="6s", **engine)
    with ThreadPoolExecutor(3) as pool:
        apart = run(case, executor=pool)
    together = run(case)
    assert told(apart) == told(together)
    assert apart.requests.equals(together.requests)


def test_a_part_travels_between_processes():
    case = scenario("random", replicas=2)
    with ProcessPoolExecutor(1) as pool:
        apart = run(case, executor=pool, pieces=Dropped())
    assert told(apart) == told(run(case, pieces=Dropped()))


def test_a_router_that_looks_at_its_replicas_is_not_taken_apart():
    class Nobody(ThreadPoolExecutor):
        def map(self, *args, **kwargs):
            raise AssertionError("nothing can be worked on apart")

    assert told(run(scenario("least-kv"), executor=Nobody(1))) == told(run(scenario("least-kv")))


@pytest.mark.parametrize("router", [*STATELESS, *STATEFUL])
def test_nobody_is_lost_between_replicas(router):
    result = run(scenario(router), check=True)
    assert result.metrics["arrived"] == 90 == result.metrics["finished"]
    assert sorted(result.requests.id) == list(range(90))
    assert sum(result.replicas.finished) == 90
    assert sum(result.metrics["mean_share"].values()) == pytest.approx(1)
    assert [pool["replica"] for pool in result.pools] == [0, 1, 2]
    assert result.metrics["pool_tokens"] == 3 * result.pools[0]["tokens"]


@pytest.mark.parametrize("horizon", ["2s", "3s", "4s"])
def test_what_is_in_flight_at_the_horizon_is_recorded_once(horizon):
    workload = {"requests": 40, "prompt_tokens": 300, "output_tokens": 60, "clients": {"count": 3}}
    case = scenario("random", 2, **PAGED, workload=workload, horizon=horizon, window={"until": "last_finish"})
    leaping, stepping = (run(case, stepwise=one, check=True) for one in (False, True))
    assert leaping.metrics["unfinished"]
    assert leaping.metrics["simulated_s"] == leaping.metrics["measured_s"]
    assert told(leaping) == told(stepping)


def test_a_fleet_is_the_mean_of_its_replicas():
    result = run(scenario("random", replicas=4, window={"warmup": "2s"}))
    for name in ("used", "free"):
        shares = [pool["mean_share"][name] for pool in result.pools]
        assert result.metrics["mean_share"][name] == pytest.approx(sum(shares) / 4)
    rates = result.replicas.output_tokens_per_s
    assert result.metrics["output_tokens_per_s"] == pytest.approx(rates.sum())
    assert result.metrics["mean_running"] == pytest.approx(result.replicas.mean_running.sum())


def test_a_request_says_which_replica_it_came_to():
    result = run(scenario(replicas=3))
    assert result.requests.replica.tolist() == [number % 3 for number in range(90)]
    assert run(scenario(replicas=None)).requests.replica.tolist() == [0] * 90


def test_a_replica_that_nobody_comes_to_is_idle_all_the_time():
    result = run(scenario(replicas=5, workload={"rate": "1/s", "requests": 2, "prompt_tokens": 9, "output_tokens": 9}))
    assert result.replicas.finished.tolist() == [1, 1, 0, 0, 0]
    assert result.pools[4]["mean_share"]["free"] == 1


def test_the_shortest_queue_is_shorter_than_a_blind_choice_and_two_choices_lie_between():
    waits = {
        router: run(scenario(router, replicas=8, workload={
            "rate": "24/s", "requests": 1500,
            "prompt_tokens": {"distribution": "exponential", "mean": 500, "max": 3000},
            "output_tokens": {"distribution": "exponential", "mean": 60, "max": 600},
        })).metrics["ttft_s"]["mean"]
        for router in ("random", "power-of-two", "least-requests")
    }  # fmt: skip
    assert waits["least-requests"] < waits["power-of-two"] < waits["random"]


def test_a_session_finds_its_earlier_turns_only_where_it_stays():
    found = {
        router: run(scenario(router, replicas=4, **CACHED, pool={"tokens": 30_000}, workload={
            "rate": "3/s", "requests": 150, "prompt_tokens": 300, "output_tokens": 50, **SESSIONS,
        })).metrics["hit_rate"]
        for router in ("round-robin", "session-affinity", "prefix-aware")
    }  # fmt: skip
    assert found["session-affinity"] > 1.5 * found["round-robin"]
    assert found["prefix-aware"] > 1.5 * found["round-robin"]


@pytest.mark.parametrize("engine", [CACHED, RADIX])
def test_a_prefix_aware_router_sends_a_group_where_it_is_cached(engine):
    case = scenario({"name": "prefix-aware", "min_match": 0.1}, replicas=3, **engine)
    result = run(case, check=True)
    assert result.metrics["hit_rate"] > run(scenario("round-robin", replicas=3, **engine)).metrics["hit_rate"]


def test_a_fleet_is_saved_and_read_back(tmp_path):
    result = run(scenario("least-requests"))
    names = {path.name for path in result.save(tmp_path)}
    assert {"replicas.parquet", "requests.parquet", "summary.json"} <= names
    assert not {"steps.parquet", "memory.parquet"} & names
    again = Result.load(tmp_path)
    assert again.replicas.equals(result.replicas)
    assert again.requests.equals(result.requests)


def test_the_tables_that_a_fleet_has_not_say_why():
    with pytest.raises(KeyError, match="replica by replica"):
        _ = run(scenario(replicas=2)).tables["steps"]
    with pytest.raises(ValueError, match="give its scenario a fleet"):
        _ = run(scenario(replicas=None)).replicas


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"fleet": {"replicas": 0}}, "fleet.replicas"),
        ({"fleet": {"replicas": 2, "router": "nearest"}}, "nearest is not known here"),
        ({"fleet": {"replicas": 2, "router": {"name": "random", "min_match": 0.5}}}, "nothing that random knows of"),
        ({"fleet": {"replicas": 2, "router": "prefix-aware"}}, "these cache nothing"),
        ({"fleet": {"replicas": 2}, "window": {"until": "saturated"}}, "at different times"),
        (
            {"fleet": {"replicas": 2, "router": "least-kv"}, "allocator": "no-cache", "pool": None},
            "keeps none: it would",
        ),
    ],
)
def test_what_does_not_go_together_is_told(changes, said):
    with pytest.raises(InputError, match=said):
        run(scenario(**changes))


@pytest.mark.parametrize("asked", [{"addresses": True}, {"kv_events": True}])
def test_what_is_recorded_for_one_replica_is_not_asked_of_a_fleet(asked):
    with pytest.raises(InputError, match="is for one replica"):
        run(scenario(**CACHED), **asked)
