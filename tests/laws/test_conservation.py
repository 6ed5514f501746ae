"""What every run keeps, whatever the allocator: requests, slots, tokens and time; Little's law; determinism."""

import pytest
from hypothesis import given, settings

from kvsim.metrics.memory import SERIES
from kvsim.step import CAUSES, CLASSES, ENDS
from tests.laws.cases import allocator_of, everything, run_case
from tests.laws.strategies import ALLOCATORS, scenarios

EXAMPLES = 120

DESIGNED = {
    "capacity": {"wait", "evict", "preempt", "compact"},
    "fragmentation": {"wait", "evict", "preempt", "compact"},
    "activation": {"wait", "preempt"},
    "never": {"reject"},
    "outgrown": {"abort"},
}
"""The outcomes that the design has for each cause of a blocked allocation."""
REASONS = {"eos", "max_tokens", "max_model_len"}


def lasting(case):
    """The requests that arrive before the run is over."""
    horizon = case["horizon_ps"]
    return {r.id: r for r in case["requests"] if horizon is None or r.arrival_ps <= horizon}


def every_request_ends_once(case, log):
    requests = log.recording.requests
    assert requests.arrived == len(requests.ended) == len(lasting(case))
    assert {ended.id for ended in requests.ended} == lasting(case).keys()
    assert {ended.end for ended in requests.ended} <= set(ENDS)
    for ended in requests.ended:
        assert (ended.finish_reason in REASONS) == (ended.end == "finished")
        assert ended.finish_reason is None or ended.end == "finished"
    assert case["horizon_ps"] is not None or all(ended.end != "unfinished" for ended in requests.ended)


def little_holds_exactly(case, log):
    """The integral of requests in the system (step side) is the sum of their stays (request side)."""
    ended = log.recording.requests.ended
    stays_ps = sum(r.end_ps - r.arrival_ps for r in ended)
    assert log.recording.occupancy.stay_ps == stays_ps
    assert sum(dict(zip(SERIES, values, strict=True))["stay_ps"] for values in by_row(log)) == stays_ps
    assert all(r.end_ps == r.arrival_ps for r in ended if r.end == "rejected")
    assert log.recording.occupancy.count == 0


def causes_come_before_effects(case, log):
    for r in log.recording.requests.ended:
        request = lasting(case)[r.id]
        times = (r.arrival_ps, r.first_scheduled_ps, r.first_token_ps, r.end_ps)
        assert r.arrival_ps == request.arrival_ps
        assert r.arrival_ps <= r.end_ps <= log.end_ps
        if r.first_scheduled_ps is None:
            assert r.first_token_ps is None
            assert (r.generated_tokens, r.preemptions) == (0, 0)
        else:
            assert r.arrival_ps <= r.first_scheduled_ps <= r.end_ps
        if r.first_token_ps is None:
            assert r.generated_tokens == 0
        else:
            assert times[1] < times[2] <= times[3]
            assert r.generated_tokens >= 1
        if r.end == "finished":
            assert None not in times


def slots_add_up(case, log):
    """The eight classes fill the pool at every moment: their integrals add up to pool x time, none below 0."""
    pool, totals = case["pool_slots"], log.recording.memory.totals
    assert totals.time_ps == log.end_ps
    assert min(totals.slots_ps) >= 0
    assert sum(totals.slots_ps) == pool * log.end_ps
    assert all(peak <= pool for peak in totals.peaks)
    for integral, peak in zip(totals.slots_ps, totals.peaks, strict=True):
        assert integral <= peak * log.end_ps
        assert (integral > 0) == (peak > 0)


def every_row_adds_up(case, log):
    """Each row of the step records holds a pool full of slots, in order, and nobody beyond `max_num_seqs`."""
    rows = [dict(zip(SERIES, values, strict=True)) for values in by_row(log)]
    for row in rows:
        levels = [row[name] for name in CLASSES]
        assert min(levels) >= 0
        assert sum(levels) == case["pool_slots"]
        assert row["running"] <= case["max_num_seqs"]
        assert row["prefill_tokens"] + row["decode_tokens"] <= case["max_num_batched_tokens"]
    for row, following in zip(rows, rows[1:], strict=False):
        assert row["start_ps"] + row["duration_ps"] <= following["start_ps"]
    assert sum(row["steps"] for row in rows) == log.recording.memory.steps


def by_row(log):
    series, width = log.recording.memory.series, len(SERIES)
    return [series[at : at + width] for at in range(0, len(series), width)]


def both_sides_count_the_same_tokens(case, log):
    """Tokens emitted and computed, by the step records and by the request records, which share nothing."""
    ended, totals = log.recording.requests.ended, log.recording.memory.totals
    emitted = sum(r.generated_tokens for r in ended)
    gaps = sum(max(0, r.generated_tokens - 1) for r in ended)
    assert totals.tokens == emitted
    assert sum(log.recording.gaps.histogram.counts.values()) == gaps
    for r in ended:
        room = case["max_model_len"] - r.prompt_tokens
        allowed = min(lasting(case)[r.id].output_tokens, r.max_tokens or room, room)
        assert (r.generated_tokens == allowed) == (r.end == "finished") or r.end == "rejected"
        assert 0 <= r.recomputed_tokens <= r.lost_tokens
        assert r.preemptions > 0 or r.lost_tokens == 0
    assert log.recording.requests.preemptions == sum(r.preemptions for r in ended)
    if {r.end for r in ended} <= {"finished", "rejected"}:
        rows = [dict(zip(SERIES, values, strict=True)) for values in by_row(log)]
        computed = sum(row["prefill_tokens"] + row["decode_tokens"] * row["steps"] for row in rows)
        # The last sampled token is never computed; what a preemption loses is computed again or for the first time.
        kept = sum(r.prompt_tokens + r.generated_tokens - 1 for r in ended if r.end == "finished")
        assert computed == kept + sum(r.lost_tokens for r in ended)
        assert all(r.recomputed_tokens == r.lost_tokens for r in ended if r.preemptions == 1)


def blocked_allocations_are_of_the_design(case, log):
    requests = log.recording.requests
    stays = {r.id: (r.arrival_ps, r.end_ps) for r in requests.ended}
    pool = case["pool_slots"]
    for event in requests.events:
        arrival, end = stays[event.request]
        assert arrival <= event.time_ps <= end
        assert event.cause in CAUSES
        assert event.outcome in DESIGNED[event.cause]
        assert 0 <= event.largest_hole_slots <= event.free_slots <= pool
        assert event.need_slots > event.largest_hole_slots or event.cause == "never"
        if event.cause == "capacity":
            assert event.need_slots > event.free_slots
        if event.cause == "fragmentation":
            assert event.free_slots >= event.need_slots > event.largest_hole_slots
            assert case["allocator"] != "paged"
    times = [event.time_ps for event in requests.events]
    assert times == sorted(times)
    by_end = {end: sorted(r.id for r in requests.ended if r.end == end) for end in ENDS}
    assert sorted(e.request for e in requests.events if e.cause == "never") == by_end["rejected"]
    assert sorted(e.request for e in requests.events if e.cause == "outgrown") == by_end["aborted"]
    allocator = allocator_of(case)
    for r in requests.ended:
        need = allocator.capacity(max(r.prompt_tokens, allocator.declare(r.prompt_tokens, r.output_tokens)))
        impossible = r.prompt_tokens >= case["max_model_len"] or need > allocator.most_slots
        assert (r.end == "rejected") == impossible


LAWS = (
    every_request_ends_once,
    little_holds_exactly,
    causes_come_before_effects,
    slots_add_up,
    every_row_adds_up,
    both_sides_count_the_same_tokens,
    blocked_allocations_are_of_the_design,
)


@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_requests_slots_tokens_and_time_are_conserved(allocator):
    @settings(max_examples=EXAMPLES)
    @given(scenarios(allocators=(allocator,)))
    def conserved(case):
        for stepwise in (False, True):
            log = run_case(case, stepwise=stepwise)
            for law in LAWS:
                law(case, log)

    conserved()


@settings(max_examples=EXAMPLES)
@given(scenarios())
def test_the_same_case_gives_the_same_run(case):
    assert everything(run_case(case, stepwise=False)) == everything(run_case(case, stepwise=False))


@settings(max_examples=EXAMPLES)
@given(scenarios())
def test_auditing_a_run_changes_nothing(case):
    audited, plain = (run_case(case, stepwise=False, check=check) for check in (True, False))
    assert everything(audited) == everything(plain)


@settings(max_examples=EXAMPLES)
@given(scenarios())
def test_whoever_waits_for_the_end_of_each_request_is_told_once(case):
    ends = []
    log = run_case(case, stepwise=False, on_end=lambda: ends.append(1))
    assert len(ends) == log.recording.requests.arrived
