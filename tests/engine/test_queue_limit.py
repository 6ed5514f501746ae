"""A limit on the queue: who comes while as many wait as may is rejected at once, and tries again if it does."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvsim.metrics.summary import Run, Slo, metrics
from kvsim.request import Request
from tests.effort import examples
from tests.laws.cases import everything, run_case
from tests.laws.strategies import scenarios

MS = 10**9
ONE_SEAT = {
    "allocator": "paged",
    "pool_slots": 64,
    "block_size": 16,
    "watermark": 0.0,
    "reserve_full_isl": True,
    "max_num_seqs": 1,
    "max_num_batched_tokens": 64,
    "max_model_len": 64,
    "long_prefill_token_threshold": 0,
    "chunked_prefill": True,
    "horizon_ps": None,
    "step_time": {"base_ps": MS, "token_ps": 0, "context_ps": 0, "copied_ps": 0},
}


def ends(log):
    return {record.id: record.end for record in log.recording.requests.ended}


def test_who_comes_while_as_many_wait_as_may_is_rejected_at_once():
    # One runs for ten steps, the next two wait, the fourth finds both there; the fifth comes when one of them is gone.
    arrivals_ps = (0, MS // 2, MS // 2, 2 * MS, 11 * MS)
    requests = [Request(number, time_ps, 10, 10) for number, time_ps in enumerate(arrivals_ps)]
    log = run_case(ONE_SEAT | {"requests": requests}, stepwise=False, max_queued=2)
    assert ends(log) == {0: "finished", 1: "finished", 2: "finished", 3: "rejected", 4: "finished"}
    [event] = [event for event in log.recording.requests.events if event.outcome == "reject"]
    assert (event.time_ps, event.request, event.cause, event.need_slots) == (2 * MS, 3, "queue", 16)


def test_a_prompt_that_never_fits_is_told_so_even_while_the_queue_is_full():
    requests = [Request(0, 0, 10, 10), Request(1, 1, 10, 10), Request(2, 2, 64, 1)]
    log = run_case(ONE_SEAT | {"requests": requests}, stepwise=False, max_queued=1)
    assert [(e.request, e.cause) for e in log.recording.requests.events if e.outcome == "reject"] == [(2, "never")]


def test_a_retry_with_back_off_gets_in_when_the_queue_is_short_again():
    requests = [Request(0, 0, 10, 10), Request(1, 1, 10, 10), Request(2, MS, 10, 10)]

    def again(number, now_ps, end, tokens):
        return [Request(number + 10, now_ps + 5 * MS, 10, 10)] if end == "rejected" else []

    log = run_case(ONE_SEAT | {"requests": requests}, stepwise=False, max_queued=1, after=again)
    assert ends(log) == {0: "finished", 1: "finished", 2: "rejected", 12: "rejected", 22: "finished"}


@settings(max_examples=examples(150), deadline=None)
@given(case=scenarios(), max_queued=st.integers(1, 4))
def test_with_a_limit_too_a_leap_is_what_its_steps_are_and_the_queue_is_never_longer(case, max_queued):
    leaping, stepping = (run_case(case, stepwise=how, max_queued=max_queued) for how in (False, True))
    assert everything(leaping) == everything(stepping)
    requests = leaping.recording.requests
    rejected = {record.id for record in requests.ended if record.end == "rejected"}
    assert {event.request for event in requests.events if event.outcome == "reject"} == rejected
    unlimited = run_case(case, stepwise=False)
    if not any(event.cause == "queue" for event in requests.events):
        assert everything(leaping) == everything(unlimited)


@pytest.mark.parametrize("max_queued", [1, 3])
def test_the_summary_counts_those_that_were_turned_away(max_queued):
    requests = [Request(number, number, 10, 4) for number in range(8)]
    log = run_case(ONE_SEAT | {"requests": requests}, stepwise=False, max_queued=max_queued)
    recording = log.recording
    run = Run(recording.requests, recording.memory, recording.gaps.histogram, log.end_ps, 7, 16, "auto", Slo())
    found = metrics(run)
    assert found["blocked"]["queue"] == found["rejected"] == 8 - 1 - max_queued
