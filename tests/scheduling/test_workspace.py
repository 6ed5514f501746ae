"""The memory for activations bounds the tokens of a step: cause `activation`, and what becomes of whom it stops."""

import pytest

from kvsim.memory.no_cache import NoCacheAllocator
from kvsim.request import Request
from kvsim.scheduling.continuous import ContinuousScheduler
from kvsim.scheduling.prefill_first import PrefillFirstScheduler
from kvsim.scheduling.static import StaticScheduler
from tests.scheduling import stories
from tests.scheduling.stories import chunks, ends, events, serve, step, submit

WHOLE = [
    (PrefillFirstScheduler, {}),
    (StaticScheduler, {}),
    (ContinuousScheduler, {"chunked_prefill": False}),
]
Whole = pytest.mark.parametrize(("kind", "rules"), WHOLE, ids=["prefill first", "static", "whole prompts"])


def scheduler(kind=ContinuousScheduler, pool=1000, *, workspace=8, budget=16, seqs=4, **rules):
    return stories.scheduler(kind, pool, workspace_tokens=workspace, budget=budget, seqs=seqs, **rules)


def test_a_prompt_that_the_budget_would_allow_is_cut_to_the_workspace_and_that_is_an_event():
    engine = scheduler()
    submit(engine, 10)
    plan = step(engine)
    [blocked] = plan.blocked
    assert (blocked.short, blocked.outcome) == (("activation", 10, 8, 8), "wait")
    assert chunks(plan) == [(0, 8)]
    assert step(engine).blocked == []


def test_what_the_budget_would_cut_anyway_is_no_event():
    engine = scheduler()
    submit(engine, 17)
    plan = step(engine)
    assert (chunks(plan), plan.blocked) == ([(0, 8)], [])


def test_who_waits_for_memory_too_is_told_only_of_that():
    """4 slots are free. Each plan tries again; waiting for memory alone is one event, not a new one every step."""
    engine = scheduler(pool=12)
    submit(engine, 7)
    step(engine)
    submit(engine, 10)
    for _ in range(3):
        assert [(b.short.cause, b.outcome) for b in step(engine).blocked] == [("capacity", "wait")]
    log = serve([Request(0, 0, 7, 4), Request(1, 0, 10, 1)], lambda: scheduler(pool=12))
    assert [event[1:] for event in events(log)] == [(1, "capacity", "wait"), (1, "activation", "wait")]


def test_a_whole_prompt_waits_until_the_decodes_leave_it_room():
    """Workspace 8: beside two that decode a prompt of 7 does not fit, beside one it does."""
    requests = [Request(0, 0, 3, 3), Request(1, 0, 3, 9), Request(2, 500, 7, 1)]
    log = serve(requests, lambda: scheduler(chunked_prefill=False))
    assert events(log) == [(1000, 2, "activation", "wait")]
    assert ends(log) == {0: ("finished", 3000, 3), 1: ("finished", 9000, 9), 2: ("finished", 4000, 1)}


@pytest.mark.parametrize("kind", [PrefillFirstScheduler, StaticScheduler], ids=["prefill first", "static"])
def test_a_prompt_that_the_rectangle_of_prompts_has_no_room_for_waits(kind):
    """Workspace 8: 3 beside 3 fill a rectangle of 6, with 4 it would be one of 12; the budget is 16."""
    log = serve([Request(0, 0, 3, 1), Request(1, 0, 3, 1), Request(2, 0, 4, 1)], lambda: scheduler(kind))
    assert log.recording.requests.events == [(0, 2, "activation", "wait", 12, 8, 8)]
    assert ends(log) == {0: ("finished", 1000, 1), 1: ("finished", 1000, 1), 2: ("finished", 2000, 1)}
    engine = scheduler(kind, workspace=None, budget=8)
    submit(engine, 3, 3, 4)
    assert step(engine).blocked == []


@Whole
def test_a_prompt_that_is_too_long_for_any_step_is_refused_on_arrival(kind, rules):
    log = serve([Request(0, 0, 9, 1), Request(1, 0, 8, 1)], lambda: scheduler(kind, **rules))
    assert ends(log) == {0: ("rejected", 0, 0), 1: ("finished", 1000, 1)}
    assert log.recording.requests.events == [(0, 0, "activation", "reject", 9, 8, 8)]


@Whole
def test_a_preempted_request_that_has_become_too_long_for_a_step_is_aborted(kind, rules):
    """16 slots for two of 4: full with 8 each. 1 is preempted at 5,000 with 9 known tokens, one too many."""
    log = serve([Request(0, 0, 4, 6), Request(1, 0, 4, 9)], lambda: scheduler(kind, pool=16, **rules))
    assert ends(log) == {0: ("finished", 6000, 6), 1: ("aborted", 6000, 5)}
    assert events(log) == [(5000, 0, "capacity", "preempt"), (6000, 1, "activation", "abort")]


def test_chunks_make_room_for_any_length():
    log = serve([Request(0, 0, 30, 1)], lambda: scheduler(workspace=4))
    assert ends(log) == {0: ("finished", 8000, 1)}


def test_a_workspace_must_hold_a_step_of_decodes():
    with pytest.raises(ValueError, match="workspace_tokens is 3; a step in which max_num_seqs"):
        scheduler(workspace=3)


def test_where_nothing_is_kept_the_budget_says_nothing():
    engine = stories.scheduler(allocator=NoCacheAllocator(), budget=8)
    submit(engine, 30, 20)
    assert chunks(step(engine)) == [(0, 30), (1, 20)]
