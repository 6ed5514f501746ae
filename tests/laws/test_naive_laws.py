"""The judge judged: laws that the naive engine keeps on random scenarios, and what these scenarios reach."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

from hypothesis import given, seed, settings

from tests.effort import examples
from tests.laws.strategies import linear_step_ps, scenarios
from tests.naive import CLASSES, Engine, Outcome, simulate


def check_step(engine: Engine) -> None:
    """The pool is not overbooked, no two regions overlap, and every scheduled token has its slot."""
    case, level = engine.case, engine.levels()
    assert sum(level.values()) == case.pool_slots
    assert min(level.values()) >= 0
    assert len(engine.running) <= case.max_num_seqs
    assert sum(tokens for _, tokens in engine.scheduled) <= case.max_num_batched_tokens
    assert all(life.written + tokens <= life.regions[-1][1] for life, tokens in engine.scheduled)
    if case.allocator != "paged":
        held = sorted(region for life in engine.running for region in life.regions)
        assert all(start + length <= following for (start, length), (following, _) in pairwise(held))


@settings(max_examples=examples(200), deadline=None, derandomize=True)
@given(scenarios())
def test_slots_requests_and_tokens_are_conserved_on_random_scenarios(case: dict[str, Any]) -> None:
    outcome = simulate(case, linear_step_ps(case["step_time"]), check_step)
    horizon = case["horizon_ps"]
    counted = {r.id: r for r in case["requests"] if horizon is None or r.arrival_ps <= horizon}
    assert sum(outcome.integrals.values()) == case["pool_slots"] * outcome.end_ps
    assert outcome.requests.keys() == counted.keys()
    assert {e.id for e in outcome.events if e.cause == "never"} == ended_as(outcome, "rejected")
    assert {e.id for e in outcome.events if e.cause == "outgrown"} == ended_as(outcome, "aborted")
    assert horizon is not None or not ended_as(outcome, "unfinished")
    assert len(outcome.gaps) == sum(max(0, ended.generated - 1) for ended in outcome.requests.values())
    assert all(gap > 0 for gap in outcome.gaps)
    for number, ended in outcome.requests.items():
        request = counted[number]
        room = case["max_model_len"] - request.prompt_tokens
        allowed = min(request.output_tokens, request.max_tokens or room, room)
        assert (ended.generated == allowed) == (ended.end == "finished") or ended.end == "rejected"
        assert (ended.lost > 0) <= (ended.preemptions > 0)
        assert ended.recomputed <= ended.lost
        assert request.arrival_ps <= ended.end_ps <= outcome.end_ps


def ended_as(outcome: Outcome, end: str) -> set[int]:
    return {number for number, ended in outcome.requests.items() if ended.end == end}


@settings(max_examples=examples(50), deadline=None, derandomize=True)
@given(scenarios())
def test_a_clock_that_ticks_three_times_as_fast_changes_times_and_nothing_else(case: dict[str, Any]) -> None:
    def thrice(time_ps: int | None) -> int | None:
        return None if time_ps is None else 3 * time_ps

    slow = case | {
        "requests": [
            replace(r, arrival_ps=3 * r.arrival_ps, patience_ps=thrice(r.patience_ps)) for r in case["requests"]
        ],
        "horizon_ps": thrice(case["horizon_ps"]),
        "step_time": {name: 3 * value for name, value in case["step_time"].items()},
    }
    outcome, slower = (simulate(c, linear_step_ps(c["step_time"])) for c in (case, slow))
    assert slower == Outcome(
        requests={
            number: ended._replace(
                admitted_ps=thrice(ended.admitted_ps),
                token_ps=thrice(ended.token_ps),
                end_ps=3 * ended.end_ps,
            )
            for number, ended in outcome.requests.items()
        },
        events=[event._replace(time_ps=3 * event.time_ps) for event in outcome.events],
        integrals={name: 3 * value for name, value in outcome.integrals.items()},
        peaks=outcome.peaks,
        gaps=[3 * gap for gap in outcome.gaps],
        steps=outcome.steps,
        max_running=outcome.max_running,
        stay_ps=3 * outcome.stay_ps,
        end_ps=3 * outcome.end_ps,
    )


def test_the_random_scenarios_reach_every_cause_end_and_class_and_coinciding_moments() -> None:
    seen: set[Any] = set()

    def look(case: dict[str, Any]) -> None:
        assert case["allocator"] != "paged" or case["pool_slots"] % case["block_size"] == 0
        assert case["max_num_batched_tokens"] >= case["max_num_seqs"]
        assert case["chunked_prefill"] or case["max_num_batched_tokens"] >= case["max_model_len"]
        assert [r.id for r in case["requests"]] == list(range(len(case["requests"])))
        starts: set[int] = set()
        outcome = simulate(case, linear_step_ps(case["step_time"]), lambda engine: starts.add(engine.now))
        seen.update((event.cause, event.outcome) for event in outcome.events)
        for ended in outcome.requests.values():
            seen.update({ended.end, ended.reason, (case["allocator"], ended.preemptions > 0)})
        seen.update(name for name, peak in outcome.peaks.items() if peak)
        seen.update("arrival at a step's end" for r in case["requests"] if r.arrival_ps in starts - {0})

    for allocator, tried in (("contiguous", 250), ("paged", 100)):
        cases = given(scenarios(allocators=(allocator,)))
        seed(0)(settings(max_examples=tried, deadline=None, database=None)(cases(look)))()
    causes = {(cause, outcome) for cause in ("capacity", "fragmentation") for outcome in ("wait", "preempt")}
    assert seen >= causes | {("never", "reject"), ("outgrown", "abort")}
    assert seen >= {"finished", "rejected", "cancelled", "aborted", "unfinished"}
    assert seen >= {"eos", "max_tokens", "max_model_len"}
    assert seen >= set(CLASSES) - {"dead", "cached"}
    assert seen >= {("paged", True), ("contiguous", True), "arrival at a step's end"}
