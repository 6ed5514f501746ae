"""What every run keeps, whatever the allocator: requests, slots, tokens and time; Little's law; determinism."""

from collections import Counter

import pytest
from hypothesis import given, settings

from kvsim.engine.live import first_need
from kvsim.metrics.memory import SERIES
from kvsim.metrics.requests import entering
from kvsim.step import CAUSES, CLASSES, ENDS
from tests.effort import examples
from tests.laws.cases import CACHES, WHOLE_PROMPTS, allocator_of, everything, run_case, scheduler_of
from tests.laws.strategies import ALLOCATORS, scenarios

EXAMPLES = examples(120)

DESIGNED = {
    "capacity": {"wait", "evict", "preempt", "compact"},
    "fragmentation": {"wait", "evict", "preempt", "compact"},
    "activation": {"wait", "reject", "abort"},
    "never": {"reject"},
    "outgrown": {"abort"},
}
"""The outcomes that the design has for each cause of a blocked allocation."""
INSTEAD = {"never": {"wait", "compact"}, "abort": {"wait", "compact", "abort"}}
"""Those of the first two where nobody is preempted."""
REASONS = {"eos", "max_tokens", "max_model_len"}


def allowed_outputs(case, request):
    """Output tokens of each sample of a request, if nothing stops it."""
    room = case["max_model_len"] - request.prompt_tokens
    limit = room if request.max_tokens is None else min(room, request.max_tokens)
    most = most_output(case, request)
    limit = limit if most is None else min(limit, most)
    return [min(limit, output) for output in (request.output_tokens, *request.more_outputs)]


def most_output(case, request):
    """What the engine cuts outputs to."""
    return scheduler_of(case).most_output(entering(request, case["max_model_len"]).sequence)


def two_in_flight(case):
    """Steps are planned before the end of those who are in them is known."""
    return case.get("async_scheduling", False) or case.get("overlap", False)


def budget_of(case):
    """Tokens that a step may compute."""
    if case.get("scheduler") == "sglang":
        # Its budgets are exceeded by the first prompt of a pass, by what goes on, and by rows that ride along.
        return case["pool_slots"] + case["max_model_len"]
    return case.get("workspace_tokens") or case["max_num_batched_tokens"]


def whole_prompts(case):
    """Prompts are computed in one piece."""
    if case.get("scheduler") == "sglang":
        return False
    return case.get("scheduler") in WHOLE_PROMPTS or not case["chunked_prefill"]


def forks(case, request):
    """The samples of a request go on from one prompt, computed once."""
    scheduler, journey = scheduler_of(case), entering(request, case["max_model_len"])
    first_need(scheduler, journey)
    journey.sequence.samples = tuple(sample.sequence for sample in journey.samples[1:])
    journey.sequence.seats = len(journey.samples)
    return scheduler.forks(journey.sequence)


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
        if case["allocator"] == "no-cache":
            continue
        computed = row["prefill_tokens"] + row["decode_tokens"]
        assert computed <= budget_of(case)
        if row["prefill_tokens"] and case.get("scheduler") in WHOLE_PROMPTS:
            # A rectangle of prompts keeps to the budget, padding included, and nobody decodes beside it.
            assert not row["decode_tokens"]
            assert computed + row["padding_tokens"] <= budget_of(case)
    for row, following in zip(rows, rows[1:], strict=False):
        assert row["start_ps"] + row["duration_ps"] <= following["start_ps"]
    assert sum(row["steps"] for row in rows) == log.recording.memory.steps


def by_row(log):
    series, width = log.recording.memory.series, len(SERIES)
    return [series[at : at + width] for at in range(0, len(series), width)]


def both_sides_count_the_same_tokens(case, log):
    """Tokens emitted and computed, by the step records and by the request records, which share nothing."""
    ended, totals = log.recording.requests.ended, log.recording.memory.totals
    requests = lasting(case)
    emitted = sum(r.generated_tokens for r in ended)
    assert totals.tokens == emitted
    if all(r.samples == 1 for r in ended):
        gaps = sum(max(0, r.generated_tokens - 1) for r in ended)
        assert log.recording.gaps.histogram.count == gaps
    for r in ended:
        allowed = sum(allowed_outputs(case, requests[r.id]))
        # A member of a static batch may have all its tokens and leave before they are handed over.
        complete = r.generated_tokens == allowed and (r.end == "finished" or case.get("scheduler") != "static")
        assert complete == (r.end == "finished") or r.end == "rejected"
        assert 0 <= r.recomputed_tokens <= r.lost_tokens
        assert r.preemptions > 0 or r.lost_tokens == 0
    assert log.recording.requests.preemptions == sum(r.preemptions for r in ended)
    if {r.end for r in ended} <= {"finished", "rejected"}:
        rows = [dict(zip(SERIES, values, strict=True)) for values in by_row(log)]
        computed = sum(row["prefill_tokens"] + row["decode_tokens"] * row["steps"] for row in rows)
        # The last sampled token is never computed; what a preemption loses is computed again or for the first time.
        kept = 0
        for r in ended:
            if r.end == "finished":
                prompts = 1 if forks(case, requests[r.id]) else r.samples
                kept += prompts * r.prompt_tokens + r.generated_tokens - r.samples
        found = sum(r.hit_tokens + r.rehit_tokens for r in ended)
        # Of a request whose last token was in flight when it was preempted nothing is kept.
        in_vain, surplus = {0}, kept + sum(r.lost_tokens for r in ended) - found - computed
        if two_in_flight(case):
            for r in ended:
                if r.preemptions:
                    in_vain |= {tokens + r.prompt_tokens + r.generated_tokens - 1 for tokens in in_vain}
        assert surplus in in_vain or (in_vain != {0} and surplus > 0 and any(r.samples > 1 for r in ended))
        for r in ended:
            if r.preemptions == 1 and (r.recomputed_tokens or in_vain == {0}):
                assert r.recomputed_tokens == max(0, r.lost_tokens - r.rehit_tokens)
    for r in ended:
        assert 0 <= r.hit_tokens <= r.asked_tokens <= r.prompt_tokens * r.samples
        assert r.preemptions or not r.rehit_tokens
        assert case["allocator"] in CACHES or r.hit_tokens == r.rehit_tokens == 0


def blocked_allocations_are_of_the_design(case, log):
    requests = log.recording.requests
    stays = {r.id: (r.arrival_ps, r.end_ps) for r in requests.ended}
    pool = case["pool_slots"]
    for event in requests.events:
        arrival, end = stays[event.request]
        assert arrival <= event.time_ps <= end
        assert event.cause in CAUSES
        if event.cause in ("capacity", "fragmentation") and case.get("preemption") in INSTEAD:
            assert event.outcome in INSTEAD[case["preemption"]]
        else:
            assert event.outcome in DESIGNED[event.cause]
        assert 0 <= event.largest_hole_slots <= event.free_slots
        assert event.free_slots <= (budget_of(case) if event.cause == "activation" else pool)
        assert event.need_slots > event.largest_hole_slots or event.cause == "never"
        if event.cause == "capacity":
            assert event.need_slots > event.free_slots
        if event.cause == "fragmentation":
            assert event.free_slots >= event.need_slots > event.largest_hole_slots
            assert case["allocator"] != "paged"
    times = [event.time_ps for event in requests.events]
    assert times == sorted(times)
    by_end = {end: {r.id for r in requests.ended if r.end == end} for end in ENDS}
    assert {e.request for e in requests.events if e.outcome == "reject"} == by_end["rejected"]
    assert {e.request for e in requests.events if e.outcome == "abort"} == by_end["aborted"]
    allocator, limit = allocator_of(case), case["max_model_len"]
    for r in requests.ended:
        declared = [allocator.declare(r.prompt_tokens, output) for output in allowed_outputs(case, lasting(case)[r.id])]
        if case.get("preemption") == "never":
            declared.append(limit if r.max_tokens is None else min(limit, r.prompt_tokens + r.max_tokens))
        never = r.prompt_tokens >= limit or allocator.capacity(max(r.prompt_tokens, *declared)) > allocator.most_slots
        unlimited = not allocator.keeps and case.get("workspace_tokens") is None
        most = most_output(case, lasting(case)[r.id])
        never = never or (most is not None and most < 1)
        too_long = whole_prompts(case) and r.prompt_tokens > budget_of(case) and not unlimited
        assert (r.end == "rejected") == (never or too_long)


def what_leaves_for_host_memory_comes_back_or_ends_there(case, log):
    """Each swapped token crosses the link once out, and once back unless its request ends in between."""
    ended, swaps = log.recording.requests.ended, case.get("preemption") == "swap"
    out = sum(r.swapped_tokens for r in ended)
    assert swaps or not out
    assert out <= log.recording.swapped_slots <= 2 * out
    if {r.end for r in ended} <= {"finished", "rejected"}:
        assert log.recording.swapped_slots == 2 * out
    if swaps and case["host_slots"] >= 10_000:
        assert all(r.lost_tokens == r.recomputed_tokens == 0 for r in ended if r.end == "finished")
    if case.get("preemption") in ("abort", "never"):
        assert log.recording.requests.preemptions == 0


def who_is_preempted_runs_again_or_ends_away(case, log):
    """Each comes back after it left and before it ends; away for good is at most each sample of a request, once."""
    requests = log.recording.requests
    ended = {r.id: r for r in requests.ended}
    away = Counter(loss.request for loss in requests.losses if loss.resumed_ps is None)
    for loss in requests.losses:
        record = ended[loss.request]
        assert record.first_scheduled_ps <= loss.time_ps <= (loss.resumed_ps or record.end_ps) <= record.end_ps
    for number, times in away.items():
        assert times <= ended[number].samples
        if ended[number].end == "finished":
            # What finishes away had its last token in flight.
            assert two_in_flight(case)


def padding_and_gathering_are_of_those_that_pad(case, log):
    """Ragged kernels beside chunks pad nothing; only padded kernels gather; only what was kept twice is duplicate.

    Rows of those that have ended while the step was in flight are padding.
    """
    padded, in_vain = case.get("kernel") == "padded", two_in_flight(case)
    assert padded or not log.recording.gathered_slots
    assert log.recording.padding_tokens == sum(
        row["padding_tokens"] * row["steps"] for row in (dict(zip(SERIES, v, strict=True)) for v in by_row(log))
    )
    assert log.recording.padding_context_tokens >= 0
    if case.get("scheduler") not in WHOLE_PROMPTS and not in_vain:
        assert not log.recording.padding_tokens
    if case.get("scheduler") != "static" and not padded and not in_vain:
        assert not log.recording.padding_context_tokens
    if all(r.samples == 1 for r in log.recording.requests.ended):
        assert log.recording.memory.totals.duplicate_ps == 0
        assert case["allocator"] in CACHES or log.recording.memory.totals.shared_ps == 0
    assert log.recording.duplicates.slots == 0


LAWS = (
    every_request_ends_once,
    little_holds_exactly,
    causes_come_before_effects,
    slots_add_up,
    every_row_adds_up,
    both_sides_count_the_same_tokens,
    blocked_allocations_are_of_the_design,
    what_leaves_for_host_memory_comes_back_or_ends_there,
    who_is_preempted_runs_again_or_ends_away,
    padding_and_gathering_are_of_those_that_pad,
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
    log = run_case(case, stepwise=False, on_end=ends.append)
    assert ends == log.recording.requests.ended
