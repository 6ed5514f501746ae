"""What is recorded of a prefix cache, against counts by brute force; and the same whether the engine leaps or not."""

from collections import Counter
from unittest.mock import patch

from hypothesis import given, settings

from kvsim.engine.check import Auditor
from kvsim.engine.prefixes import CacheWatch
from kvsim.metrics.histogram import bucket_of
from tests.laws.cases import run_case
from tests.laws.test_prefix_caching import cases
from tests.naive_residency import NaiveResidency, Router, heard, spelled

SPREADS = ("reuse_distance", "reuse_gap", "idle", "lifetime")


class Beside(CacheWatch):
    """The product's listener, and beside it one that counts by brute force."""

    def __init__(self, allocator, clock, layers, *, kv_events):
        super().__init__(allocator, clock, layers, kv_events=kv_events)
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
    behind = {number: key for key, number in allocator.holdings._identities._numbers.items()}

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


@settings(max_examples=60)
@given(cases())
def test_uses_evictions_and_regrets_are_those_counted_by_brute_force(case):
    with patch("kvsim.engine.recording.CacheWatch", Beside):
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


@settings(max_examples=60)
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


@settings(max_examples=100)
@given(cases())
def test_leaping_and_stepping_record_the_same_to_the_step(case):
    leaping = run_case(case, stepwise=False, kv_events=True)
    assert record_of(leaping) == record_of(run_case(case, stepwise=True, kv_events=True))
    times = [batch["ts"] for batch in leaping.recording.cache.events]
    assert times == sorted(set(times))


@settings(max_examples=60)
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

    @settings(max_examples=200)
    @given(cases())
    def count(case):
        log = run_case(case, stepwise=False, kv_events=True)
        record, requests = log.recording.cache.residency, log.recording.requests
        met["found later"] += record.reuse_gap.max_ps > 0
        met["others between"] += record.reuse_distance.max_ps > 0
        met["evicted"] += record.idle.count > 0
        met["regret"] += any(r.regret_tokens for r in requests.ended)
        met["own found again"] += requests.rehit_layers[3] > 0
        copies = max(Counter(contents_of_log(log.recording.cache.events)).values(), default=0)
        met["several copies"] += copies > 1

    count()
    assert all(met[what] >= 5 for what in met), met
    assert len(met) == 6


def contents_of_log(events):
    return heard(events).contents
