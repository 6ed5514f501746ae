"""Fleets forget what nobody can ask for any more, wherever it was; their routers know what each cache has."""

from concurrent.futures import ThreadPoolExecutor
from unittest.mock import patch

import pytest

from kvsim import Scenario, run
from kvsim.engine.fleet.caches import FleetCaches
from kvsim.engine.live import LiveRequests
from kvsim.engine.replica import Replica
from kvsim.workload.stream import Workload
from tests.study.test_fleet import told
from tests.study.test_forgetting import ALLOCATORS, BASE, TRAFFICS


def scenario(traffic, router, allocator="paged", replicas=3, **workload):
    own = ALLOCATORS[allocator]
    fleet = {"fleet": {"replicas": replicas, "router": router}}
    given = BASE | own | fleet | {"workload": TRAFFICS[traffic] | workload, "engine": BASE["engine"] | own["engine"]}
    return Scenario.from_dict(given, name="here")


def made(kind):
    """Whoever of this kind is made, and the patch under which they are noted."""
    all_of_them, begin = [], kind.__init__

    def noted(self, *args, **options):
        begin(self, *args, **options)
        all_of_them.append(self)

    return all_of_them, patch.object(kind, "__init__", noted)


CASES = [
    ("alone", "round-robin", "paged"),
    ("layers", "prefix-aware", "paged"),
    ("samples", "prefix-aware", "vllm"),
    ("given up", "least-requests", "paged"),
    ("sessions by the clock", "round-robin", "vllm"),
    ("sessions by the answers", "prefix-aware", "paged"),
    ("windows", "prefix-aware", "paged"),
    ("agents", "random", "paged"),
    ("agents", "prefix-aware", "radix"),
]


@pytest.mark.parametrize(("traffic", "router", "allocator"), CASES)
def test_a_fleet_that_forgets_answers_as_one_that_does_not(traffic, router, allocator):
    asked = scenario(traffic, router, allocator)
    replicas, noting = made(Replica)
    indexes, noting_indexes = made(FleetCaches)
    with noting, noting_indexes:
        forgetting = run(asked)
    with patch.object(Workload, "over", lambda *_: ()), patch.object(LiveRequests, "_forget", lambda *_: None):
        keeping = run(asked)
    assert told(forgetting) == told(keeping)
    assert forgetting.requests.equals(keeping.requests)
    assert forgetting.metrics["hit_tokens"] > 0 or traffic == "alone"
    for replica in replicas if allocator != "radix" else ():
        assert not replica.allocator.holdings._identities._own
        assert not replica.allocator.holdings._identities._latest
    for index in indexes:
        assert not index.identities._own


@pytest.mark.parametrize("traffic", ["layers", "sessions by the clock"])
@pytest.mark.parametrize("router", ["round-robin", "session-affinity"])
def test_replicas_apart_forget_and_answer_as_together(traffic, router):
    asked = scenario(traffic, router, replicas=20)
    replicas, noting = made(Replica)
    with noting, ThreadPoolExecutor(2) as pool:
        apart = run(asked, executor=pool)
    assert told(apart) == told(run(asked))
    # Of each piece its own replicas, and the one by which the whole was built.
    assert all(not replica.allocator.holdings._identities._own for replica in replicas)


@pytest.mark.parametrize("traffic", ["layers", "sessions by the clock", "sessions by the answers", "agents"])
def test_a_prefix_aware_router_knows_what_each_replica_would_find(traffic):
    replicas, noting = made(Replica)
    found, compared = FleetCaches.found, []

    def checked(self, content, tokens):
        lengths = found(self, content, tokens)
        for replica, length in zip(replicas, lengths, strict=True):
            holdings = replica.allocator.holdings
            compared.append((length, holdings.hit(holdings.open(content, tokens), tokens + 1).tokens))
        return lengths

    with noting, patch.object(FleetCaches, "found", checked):
        run(scenario(traffic, "prefix-aware"))
    assert all(length == there for length, there in compared)
    assert max(length for length, _ in compared) > (0 if traffic == "layers" else 200)


def test_a_longer_run_keeps_no_more_of_what_is_gone():
    sizes = []
    for requests in (60, 240):
        replicas, noting = made(Replica)
        with noting:
            run(scenario("sessions by the clock", "prefix-aware", requests=requests))
        sizes.append(sum(len(one.recording.cache.residency._touched) for one in replicas))
    assert sizes[1] < 1.5 * sizes[0]
