"""The same ladder under SGLang's own rules: it refuses what could not end, cuts the rest to what can, and serves it."""

from dataclasses import replace

import pytest

from tests.laws.agreement import ends_of_all, keeps_every_law
from tests.laws.cases import everything
from tests.laws.test_conservation import most_output
from tests.laws.test_pressure_ladder import REQUESTS, case_of, ended_as, ladder, run

RULES = {"scheduler": "sglang", "max_running_requests": 32, "chunked_prefill_size": 128, "eviction": "lru"}
KINDS = {
    "token by token, overlapped, longest match first": {"block_size": 1, "overlap": True, "schedule_policy": "lpm"},
    "pages, one pass after the other": {"block_size": 16, "overlap": False, "schedule_policy": "fcfs"},
    "mixed passes": {"block_size": 4, "overlap": True, "schedule_policy": "fcfs", "enable_mixed_chunk": True},
    "no cache": {"block_size": 1, "overlap": True, "schedule_policy": "fcfs", "caching": False},
}


@pytest.fixture(scope="module", params=KINDS)
def climbed(request):
    """[(case, log)] of one set of rules, roomiest pool first."""
    options = {"enable_mixed_chunk": False} | RULES | KINDS[request.param]
    cases = [case_of("prefix", options, pool) for pool in ladder("prefix", options)]
    return [(case, run(case)) for case in cases]


def test_on_every_rung_the_run_ends_by_itself_and_keeps_every_law(climbed):
    assert len(climbed) >= 8
    for case, log in climbed:
        keeps_every_law(case, log)
        assert sum(ends_of_all(case, log).values()) == REQUESTS


def test_on_every_rung_leaping_is_stepping(climbed):
    for case, log in climbed:
        assert everything(run(case, stepwise=True)) == everything(log)


def test_where_there_is_room_for_all_nobody_is_retracted(climbed):
    _, log = climbed[0]
    assert log.recording.requests.preemptions == 0
    assert len(ended_as(log, "finished")) == REQUESTS


def test_what_could_not_emit_a_token_is_refused_on_arrival_and_everyone_else_finishes(climbed):
    for case, log in climbed:
        refused = {r.id for r in case["requests"] if most_output(case, r) < 1}
        assert ended_as(log, "rejected") == refused
        assert len(ended_as(log, "finished")) + len(ended_as(log, "aborted")) == REQUESTS - len(refused)
    assert len(ended_as(climbed[-1][1], "rejected")) > len(ended_as(climbed[0][1], "rejected"))


def test_pressure_shows_as_waiting_and_outputs_are_cut_to_the_pool(climbed):
    causes = {(event.cause, event.outcome) for _, log in climbed for event in log.recording.requests.events}
    assert {("capacity", "wait"), ("never", "reject")} <= causes
    tight, log = climbed[-2]
    cut = {r.id for r in tight["requests"] if 0 < most_output(tight, r) < r.output_tokens}
    reasons = {ended.id: ended.finish_reason for ended in log.recording.requests.ended}
    assert cut
    assert {reasons[number] for number in cut} <= {"max_model_len", None}


def test_where_clients_say_how_much_they_want_the_estimate_lets_too_many_in_and_some_give_way(climbed):
    """Those that say nothing count with 0.7 of up to 4,096 tokens, and are never let in beside too many others."""
    retracted = 0
    for case, _ in climbed:
        asking = [replace(request, max_tokens=request.output_tokens) for request in case["requests"]]
        log = run(case | {"requests": asking})
        retracted += log.recording.requests.preemptions
        keeps_every_law(case | {"requests": asking}, log)
    assert retracted >= 2
