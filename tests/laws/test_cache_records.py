"""What is recorded of a prefix cache, against counts by brute force; and the same whether the engine leaps or not."""

from collections import Counter
from dataclasses import replace
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvsim.content import Content, Run, own_stream
from kvsim.engine.check import Auditor
from kvsim.engine.prefixes import CacheWatch
from kvsim.metrics.histogram import bucket_of
from kvsim.request import Request
from tests.effort import examples
from tests.laws.cases import run_case
from tests.laws.test_prefix_caching import cases as any_cases
from tests.laws.test_sglang_scheduler import sglang_cases
from tests.laws.test_vllm_scheduler import followed_cases
from tests.naive_residency import NaiveResidency, Router, heard, spelled

SPREADS = ("reuse_distance", "reuse_gap", "idle", "lifetime")


@st.composite
def cases(draw, preemption="recompute"):
    """Cases of prefix caching; in half of them a few documents are asked about one by one, in a pool for about one."""
    case = draw(any_cases(preemption=preemption))
    if draw(st.booleans()):
        return case
    requests = []
    for number in range(draw(st.integers(3, 8))):
        document, tokens = draw(st.integers(0, 2)), draw(st.integers(4, 24))
        content = Content([Run(document, 0, tokens - 1), Run(own_stream(number), tokens - 1, 1)])
        requests.append(Request(number, number * draw(st.integers(0, 9_000)), tokens, 2, content=content))
    requests.sort(key=lambda request: request.arrival_ps)
    requests = [replace(request, id=number) for number, request in enumerate(requests)]
    few = {"pool_slots": 28, "block_size": draw(st.integers(1, 4)), "max_num_seqs": 1, "max_num_batched_tokens": 64}
    return case | few | {"requests": requests, "workspace_tokens": None, "horizon_ps": None, "max_model_len": 128}


class Beside(CacheWatch):
    """The product's listener, and beside it one that counts by brute force."""

    def __init__(self, allocator, clock, layers, **options):
        super().__init__(allocator, clock, layers, **options)
        self.naive = NaiveResidency(self.moment)
        self.naive.block_tokens = allocator.block_size
        self.regret = {}

    def stored(self, pieces, before, content, start, tokens):
        super().stored(pieces, before, content, start, tokens)
        self.naive.stored(pieces, before, content, start, tokens)

    def removed(self, pieces, tokens, *, for_good=False):
        super().removed(pieces, tokens, for_good=for_good)
        self.naive.removed(pieces, tokens, for_good=for_good)

    def admitted(self, sequence, content, tokens, found, beyond):
        self.naive.admitted(sequence, content, tokens, found, beyond)
        super().admitted(sequence, content, tokens, found, beyond)
        assert self.residency.regret.get(sequence) == self.naive.regret.pop(sequence, None)


def contents_of(allocator):
    """Copies by content that the allocator's own map holds."""
    identities = allocator.holdings._identities
    all_numbers = (identities._shared, *identities._own.values())
    behind = {number: key for numbers in all_numbers for key, number in numbers.items()}

    def tokens(number):
        if not number:
            return ()
        before, runs = behind[number]
        return tokens(before) + spelled(runs)

    return Counter(tokens(number) for _, number in allocator.pool._keys.values())


class RouterBeside(Auditor):
    """After every event a router that heard all events so far knows what the allocator's map holds."""

    def __init__(self):
        super().__init__()
        self.audits = 0

    def audit(self, replica):
        super().audit(replica)
        assert heard(replica.recording.cache.events).contents == contents_of(replica.allocator)


def record_of(log):
    cache, requests = log.recording.cache, log.recording.requests
    counts = {name: getattr(cache.residency, name).counts for name in SPREADS}
    return list(cache.events), counts, requests.hit_layers, requests.rehit_layers


@settings(max_examples=examples(60))
@given(cases())
def test_uses_evictions_and_regrets_are_those_counted_by_brute_force(case):
    with patch("kvsim.engine.recording.recording.CacheWatch", Beside):
        log = run_case(case, stepwise=False, kv_events=True)
    cache, ended = log.recording.cache, log.recording.requests.ended
    naive = cache.naive
    for name, counted in zip(SPREADS, (naive.reuses, naive.gaps, naive.idle, naive.lifetimes), strict=True):
        histogram = getattr(cache.residency, name)
        buckets = Counter()
        for value, tokens in counted.items():
            buckets[bucket_of(value)] += tokens
        assert histogram.counts == buckets, name
        assert histogram.sum_ps == sum(value * tokens for value, tokens in counted.items()), name
    assert naive.found_tokens == sum(r.hit_tokens + r.rehit_tokens for r in ended)


@settings(max_examples=examples(60))
@given(cases())
def test_a_router_knows_what_the_cache_holds_after_every_event(case):
    for stepwise in (False, True):
        with patch("kvsim.engine.run.Auditor", RouterBeside):
            log = run_case(case, stepwise=stepwise, kv_events=True)
        events = [event for batch in log.recording.cache.events for event in batch["events"]]
        stored = sum(len(event["block_hashes"]) for event in events if event["type"] == "BlockStored")
        removed = sum(len(event["block_hashes"]) for event in events if event["type"] == "BlockRemoved")
        assert removed == log.recording.upkeep.evictions
        router = Router()
        for batch in log.recording.cache.events:
            router.hear(batch)
        assert stored - removed == router.contents.total()


@pytest.mark.parametrize(
    "kind", [cases(), any_cases("radix"), followed_cases(), sglang_cases()], ids=["blocks", "tree", "vllm", "sglang"]
)
def test_leaping_and_stepping_record_the_same_to_the_step(kind):
    @settings(max_examples=examples(50))
    @given(kind)
    def agree(case):
        case |= {"caching": True}
        leaping = run_case(case, stepwise=False, kv_events=True)
        assert record_of(leaping) == record_of(run_case(case, stepwise=True, kv_events=True))
        times = [batch["ts"] for batch in leaping.recording.cache.events]
        assert times == sorted(set(times))

    agree()


ROOMY = {
    "allocator": "radix",
    "pool_slots": 1000,
    "block_size": 1,
    "reserve_full_isl": True,
    "max_num_seqs": 4,
    "max_running_requests": 4,
    "max_num_batched_tokens": 64,
    "chunked_prefill_size": 64,
    "long_prefill_token_threshold": 0,
    "chunked_prefill": True,
    "schedule_policy": "fcfs",
    "eviction": "lru",
    "enable_mixed_chunk": False,
    "overlap": False,
    "max_model_len": 100,
    "horizon_ps": None,
    "step_time": {"base_ps": 10, "token_ps": 0, "context_ps": 0, "copied_ps": 0},
}


@pytest.mark.parametrize("stepwise", [False, True])
@pytest.mark.parametrize("scheduler", ["continuous", "sglang"])
def test_what_a_request_leaves_in_the_tree_at_the_horizon_is_stored_at_the_horizon(scheduler, stepwise):
    """The horizon cuts a step of decoding in the middle."""
    case = ROOMY | {"scheduler": scheduler, "requests": [Request(0, 0, 3, 50)], "horizon_ps": 35}
    log = run_case(case, stepwise=stepwise, kv_events=True)
    assert list(log.recording.cache.events)[-1]["ts"] == 35e-12


@pytest.mark.parametrize("stepwise", [False, True])
@pytest.mark.parametrize("overlap", [False, True])
def test_those_who_end_together_leave_what_they_have_in_the_order_of_the_batch(overlap, stepwise):
    """Number 0 rides along in the pass that computes the prompt of 1, behind it; 30 tokens later both end. 2 ends in
    the middle, so that a leap begins and ends between its end and theirs."""
    requests = [Request(0, 0, 3, 32 + overlap), Request(1, 5, 5, 31), Request(2, 5, 4, 9)]
    case = ROOMY | {"scheduler": "sglang", "enable_mixed_chunk": True, "overlap": overlap, "requests": requests}
    log = run_case(case, stepwise=stepwise, kv_events=True)
    end_ps = {ended.id: ended.end_ps for ended in log.recording.requests.ended}
    assert end_ps[2] < end_ps[0] == end_ps[1]
    stored = [event["runs"][0][0] for event in list(log.recording.cache.events)[-1]["events"]]
    assert stored == [own_stream(1), own_stream(0)]


@settings(max_examples=examples(60))
@given(cases("swap"))
def test_the_layers_of_what_is_found_add_up(case):
    log = run_case(case, stepwise=False)
    requests = log.recording.requests
    for record in requests.ended:
        assert sum(record.hit_layers) == record.hit_tokens
        assert 0 <= record.regret_tokens <= record.asked_tokens - record.hit_tokens
    assert sum(requests.hit_layers) == sum(r.hit_tokens for r in requests.ended)
    assert sum(requests.rehit_layers) == sum(r.rehit_tokens for r in requests.ended)


def test_the_cases_meet_what_is_counted():
    """The laws above would hold of runs in which nothing is ever found or evicted as well."""
    met = Counter()

    @settings(max_examples=200, derandomize=True)
    @given(cases())
    def count(case):
        log = run_case(case, stepwise=False, kv_events=True)
        record, requests = log.recording.cache.residency, log.recording.requests
        met["found later"] += record.reuse_gap.max_ps > 0
        met["others between"] += record.reuse_distance.max_ps > 0
        met["evicted"] += record.idle.count > 0
        met["regret"] += any(r.regret_tokens for r in requests.ended)
        met["own found again"] += requests.rehit_layers[3] > 0
        met["several copies"] += heard(log.recording.cache.events).most_copies > 1

    count()
    assert all(met[what] >= 5 for what in met), met
    assert len(met) == 6
