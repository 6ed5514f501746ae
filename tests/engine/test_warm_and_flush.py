"""A cache that is filled before the run, and emptied within it, as an engine's operator would."""

import pytest

from kvsim.content import Content, Run, own_stream
from kvsim.engine.flushes import Flushes
from kvsim.metrics.tables import Tables
from kvsim.request import Request
from tests.laws.cases import run_case

BLOCK = 4
CASE = {
    "pool_slots": 64,
    "block_size": BLOCK,
    "watermark": 0.0,
    "reserve_full_isl": True,
    "max_num_seqs": 4,
    "max_num_batched_tokens": 64,
    "max_model_len": 64,
    "long_prefill_token_threshold": 0,
    "chunked_prefill": True,
    "horizon_ps": None,
    "step_time": {"base_ps": 10, "token_ps": 0, "context_ps": 0, "copied_ps": 0},
}
SGLANG = {"scheduler": "sglang", "eviction": "lru", "max_running_requests": 4, "chunked_prefill_size": None,
          "schedule_policy": "fcfs", "enable_mixed_chunk": False}  # fmt: skip
ENGINES = {
    "blocks": {"allocator": "prefix"},
    "tree": {"allocator": "radix"},
    "vllm": {"allocator": "prefix", "scheduler": "vllm"},
    "vllm async": {"allocator": "prefix", "scheduler": "vllm", "async_scheduling": True},
    "sglang": SGLANG | {"overlap": False},
    "sglang overlap": SGLANG | {"overlap": True},
}


def asks(number, arrival_ps, text=0, tokens=16, output=3):
    content = Content([Run(text, 0, tokens), Run(own_stream(number), tokens, 2)])
    return Request(number, arrival_ps, tokens + 2, output, content=content)


def hits(log):
    return {record.id: record.hit_tokens for record in log.recording.requests.ended}


def run(engine, requests, **options):
    return run_case(CASE | ENGINES[engine] | {"requests": requests}, stepwise=False, kv_events=True, **options)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_cold_cache_has_nothing_and_a_warm_one_what_was_served_before(engine):
    assert hits(run(engine, [asks(0, 0)])) == {0: 0}
    log = run(engine, [asks(0, 0), asks(1, 1000, text=7)], warm=[asks(5, 0)])
    assert hits(log) == {0: 16, 1: 0}
    assert log.recording.upkeep.evictions == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_the_outputs_of_those_before_are_there_too(engine):
    heard = Content([Run(0, 0, 16), Run(own_stream(5), 16, 2 + 8), Run(own_stream(0), 26, 4)])
    log = run(engine, [Request(0, 0, 30, 3, content=heard)], warm=[asks(5, 0, output=8)])
    # All but the last output token have been computed: whole blocks, or slots, of 25.
    assert hits(log)[0] == 24


@pytest.mark.parametrize("engine", ["blocks", "tree", "vllm", "sglang"])
def test_more_than_fits_leaves_what_was_served_last(engine):
    earlier = [asks(10 + text, 0, text=text, tokens=20) for text in range(6)]
    log = run(engine, [asks(0, 0, text=0, tokens=20), asks(1, 500, text=5, tokens=20)], warm=earlier)
    assert hits(log) == {0: 0, 1: 20}
    assert log.recording.memory.rests[0] <= 64


@pytest.mark.parametrize("engine", ENGINES)
def test_nothing_that_happened_before_the_run_is_in_its_records(engine):
    earlier = [asks(10 + text, 0, text=text, tokens=20) for text in range(6)]
    recording = run(engine, [asks(0, 100, text=9)], warm=earlier).recording
    plain = run(engine, [asks(0, 100, text=9)]).recording
    assert recording.upkeep.frees == plain.upkeep.frees
    assert recording.cache.residency.lifetime.counts != {} or recording.upkeep.evictions == 0
    assert recording.requests.arrived == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_an_emptied_cache_has_nothing_and_events_say_when(engine):
    requests = [asks(0, 0), asks(1, 1000), asks(2, 2000), asks(3, 3000)]
    log = run(engine, requests, flushes=lambda: Flushes([1500]))
    assert hits(log) == {0: 0, 1: 16, 2: 0, 3: 16}
    cleared = [
        batch["ts"] for batch in log.recording.cache.events
        if {"type": "AllBlocksCleared"} in batch["events"]
    ]  # fmt: skip
    assert cleared == [0.0, 1500 / 1e12]
    assert log.recording.flushes == [(1500, 1500)]


@pytest.mark.parametrize("engine", ENGINES)
def test_the_memory_table_shows_an_idle_cache_emptied(engine):
    log = run(engine, [asks(0, 0), asks(1, 5000, text=3)], flushes=lambda: Flushes([2000]))
    table = Tables(log.recording.requests, log.recording.memory)["memory"]
    cached = dict(zip(table["time_s"], table["cached"], strict=True))
    assert cached[2000 / 1e12] == 0
    rest = max(time for time in cached if time < 2000 / 1e12)
    assert cached[rest] > 0
    totals = log.recording.memory.totals
    held_ps = cached[rest] * (2000 - round(rest * 1e12))
    assert totals.slots_ps[5] >= held_ps
    assert sum(totals.slots_ps) == 64 * log.end_ps


@pytest.mark.parametrize("engine", ENGINES)
def test_while_requests_use_it_an_engine_refuses_and_is_asked_again_when_they_are_done(engine):
    requests = [asks(0, 0, output=40), asks(1, 1000)]
    waiting = run(engine, requests, flushes=lambda: Flushes([100]))
    ((asked_ps, done_ps),) = waiting.recording.flushes
    (ended,) = [record.end_ps for record in waiting.recording.requests.ended if record.id == 0]
    assert (asked_ps, done_ps) == (100, ended)
    assert hits(waiting)[1] == 0
    refused = run(engine, requests, flushes=lambda: Flushes([100], waits=False))
    assert refused.recording.flushes == [(100, None)]
    assert hits(refused)[1] == 16


def test_sglang_refuses_while_anybody_waits_and_vllm_does_not():
    # One seat: the second waits until the first is done, and is admitted at that very moment.
    requests = [asks(0, 0, output=10), asks(1, 5)]
    one_seat = {"max_num_seqs": 1, "max_running_requests": 1}
    for engine, hit in (("vllm", 0), ("sglang", 16)):
        case = CASE | ENGINES[engine] | one_seat | {"requests": requests}
        log = run_case(case, stepwise=False, flushes=lambda: Flushes([50]))
        assert hits(log)[1] == hit
    ((_, done_ps),) = log.recording.flushes
    assert done_ps == log.end_ps


def test_what_is_still_to_be_emptied_at_the_end_is_told_as_never_done():
    case = CASE | ENGINES["vllm"] | {"requests": [asks(0, 0, output=40)], "horizon_ps": 200}
    assert run_case(case, stepwise=False, flushes=lambda: Flushes([100])).recording.flushes == [(100, None)]


def test_times_without_end_end_with_the_run():
    from itertools import count

    log = run("vllm", [asks(0, 0), asks(1, 1000)], flushes=lambda: Flushes(count(300, 300)))
    assert [asked for asked, _ in log.recording.flushes] == [300, 600, 900]


def test_a_prompt_that_the_model_cannot_take_warms_nothing():
    log = run("vllm", [asks(0, 0)], warm=[Request(7, 0, 64, 3)])
    assert log.recording.memory.rests.get(0) is None
