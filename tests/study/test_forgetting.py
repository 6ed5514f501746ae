"""What nobody can ask for any more is forgotten by a prefix cache: the results are the same, and memory stays flat."""

from unittest.mock import patch

import pytest

from kvsim import Scenario
from kvsim.engine.live import LiveRequests
from kvsim.engine.replica import Replica
from kvsim.study.single import run
from kvsim.workload.stream import Workload

BASE = {
    "model": "llama-3.1-8b",
    "gpu": "H100",
    "pool": {"tokens": 3000},
    "engine": {"max_num_seqs": 4, "max_num_batched_tokens": 512, "max_model_len": 2048},
}
ALONE = {"rate": "20/s", "requests": 60, "output_tokens": {"distribution": "uniform", "min": 2, "max": 90}}
ALONE |= {"prompt_tokens": {"distribution": "uniform", "min": 20, "max": 500}}
LAYERS = {"layers": [{"name": "system", "tokens": 100, "texts": 3, "theta": 1}]}
TURNS = {"turns": {"distribution": "uniform", "min": 1, "max": 5}, "new_tokens": 60, "think": "500ms"}
AGENTS = {"agents": {"share": 0.5, "relation": "fork", "count": 2, "turns": 2}}
TRAFFICS = {
    "alone": ALONE,
    "layers": ALONE | LAYERS,
    "samples": ALONE | LAYERS | {"samples": 3},
    "given up": ALONE | LAYERS | {"cancel": {"share": 0.4, "after": "200ms"}},
    "sessions by the clock": ALONE | LAYERS | {"rate": "4/s", "sessions": TURNS | {"loop": "open"}},
    "sessions by the answers": ALONE | LAYERS | {"rate": "4/s", "sessions": TURNS | {"loop": "closed"}},
    "windows": ALONE | {"rate": "4/s", "sessions": TURNS | {"loop": "open", "history": {"keep": "window", "turns": 1}}},
    "agents": ALONE | {"rate": "4/s", "sessions": TURNS | AGENTS | {"loop": "closed"}},
}
ALLOCATORS = {
    "vllm": {"engine": {"profile": "vllm@0.33"}},
    "paged": {"engine": {"profile": "vllm@0.33-sync"}, "allocator": {"name": "paged", "prefix_caching": True}},
    "radix": {"engine": {"profile": "vllm@0.33-sync"}, "allocator": {"name": "radix"}},
}


def scenario(traffic, allocator):
    own = ALLOCATORS[allocator]
    return Scenario.from_dict(BASE | own | {"workload": TRAFFICS[traffic], "engine": BASE["engine"] | own["engine"]})


def replicas_of(run):
    """The result of a run, and the replica that served it."""
    made, begin = [], Replica.__init__

    def kept(self, *args, **options):
        begin(self, *args, **options)
        made.append(self)

    with patch.object(Replica, "__init__", kept):
        result = run()
    return result, made[0]


def same(one, other):
    assert one.metrics == other.metrics
    assert one.requests.equals(other.requests)
    assert one.memory.equals(other.memory)
    assert list(one.kv_events) == list(other.kv_events)


# Block by block is where most is to be forgotten; two batches in flight and a tree see the ends of requests otherwise.
CASES = [(traffic, "paged") for traffic in TRAFFICS]
CASES += [(traffic, "vllm") for traffic in ("samples", "given up", "sessions by the answers")]
CASES += [("layers", "radix"), ("agents", "radix")]


@pytest.mark.parametrize(("traffic", "allocator"), CASES)
def test_a_cache_that_forgets_answers_as_one_that_does_not(traffic, allocator):
    asked = scenario(traffic, allocator)
    forgetting, replica = replicas_of(lambda: run(asked, kv_events=True))
    with patch.object(Workload, "over", lambda *_: ()), patch.object(LiveRequests, "_forget", lambda *_: None):
        keeping, _ = replicas_of(lambda: run(asked, kv_events=True))
    same(forgetting, keeping)
    metrics = forgetting.metrics
    assert metrics["hit_tokens"] > 0 or traffic == "alone"
    assert replica.allocator.upkeep.evictions > 20
    if allocator != "radix":
        identities = replica.allocator.holdings._identities
        assert not identities._own


def test_the_record_of_residency_holds_what_is_cached_and_what_all_share():
    _, replica = replicas_of(lambda: run(scenario("layers", "paged")))
    record, pool = replica.recording.cache.residency, replica.allocator.pool
    assert pool.evicted > 3 * pool.blocks
    # Three system prompts of six blocks each.
    assert len(record._touched) <= pool.contents + 18
    assert record._last_stay <= record._since.keys()


def test_moments_that_nobody_refers_to_become_one():
    with patch("kvsim.metrics.prefix.residency._MOMENTS", 8):
        few, replica = replicas_of(lambda: run(scenario("sessions by the clock", "paged"), kv_events=True))
    many, other = replicas_of(lambda: run(scenario("sessions by the clock", "paged"), kv_events=True))
    same(few, many)
    assert len(replica.recording.cache.residency._times_ps) < len(other.recording.cache.residency._times_ps)
