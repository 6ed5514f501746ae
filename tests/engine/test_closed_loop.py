"""Requests that come because others have ended: leaping is stepping, nothing is lost, and comparisons stay paired."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvsim.engine.run import simulate
from kvsim.errors import InputError
from kvsim.request import PS_PER_S, Request
from kvsim.workload.arrivals import Poisson
from kvsim.workload.clients.limits import Patience
from kvsim.workload.layers import Shared
from kvsim.workload.lengths import Constant, Uniform
from kvsim.workload.sessions.history import Truncate, Whole
from kvsim.workload.sessions.laws import Agents, ClientLoop, OnFailure, SessionLaws
from kvsim.workload.sessions.loop import SessionTraffic
from kvsim.workload.stream import Workload
from tests.effort import examples
from tests.laws.cases import CaseTiming, everything, scheduler_of
from tests.laws.strategies import mixtures, policies, scenarios
from tests.laws.test_conservation import LAWS

EXAMPLES = examples(100)


@st.composite
def loops(draw):
    """Sessions and clients that make life hard for a small pool: no pause at all, failures, agents, impatience."""
    pause = draw(st.sampled_from([None, Constant(value=1), Uniform(min=1, max=3)]))
    failure = draw(st.sampled_from(["end", "go-on", "retry"]))
    laws = SessionLaws(
        prompt_tokens=Uniform(min=1, max=30),
        output_tokens=Uniform(min=1, max=20),
        turns=Uniform(min=1, max=5),
        new_tokens=Uniform(min=1, max=9),
        think_ms=pause,
        history=draw(st.sampled_from([Whole(), Truncate(tokens=25)])),
        agents=draw(st.sampled_from([None, Agents(share=0.5, count=Uniform(min=1, max=2))])),
        on_failure=OnFailure(then=failure, back_off_s=1e-9, retries=2),
    )
    begin = draw(st.sampled_from([{"arrivals": Poisson(rate=1e8)}, {"clients": ClientLoop(clients=4)}]))
    traffic = SessionTraffic(laws, closed=True, requests=draw(st.integers(1, 40)), **begin)
    return {
        "traffic": traffic,
        "seed": draw(st.integers(0, 5)),
        "layers": draw(st.sampled_from([(), (Shared(name="system", tokens=8),)])),
        "cancel": draw(st.sampled_from([None, Patience(after_s=2e-8, share=0.5)])),
        "samples": draw(st.sampled_from([1, 1, 3])),
    }


def run_loop(case, loop, **options):
    """The run; and the case with the requests that came, which is what laws judge it by."""
    workload, came = Workload(**loop), []

    def noted(requests):
        for request in requests:
            came.append(request)
            yield request

    log = simulate(
        noted(workload),
        scheduler_of(case),
        CaseTiming(case["step_time"]),
        max_model_len=case["max_model_len"],
        horizon_ps=case["horizon_ps"],
        check=True,
        after=lambda *ended: noted(workload.after(*ended)),
        **options,
    )
    return log, case | {"requests": came}


@st.composite
def mixed(draw):
    """Any allocator under any scheduler, kernel and preemption."""
    return draw(policies(*draw(st.sampled_from(mixtures()))[:3], samples=True))


@pytest.mark.parametrize("cases", [scenarios(), mixed()], ids=["allocators", "policies"])
def test_leaping_is_stepping_and_everything_is_conserved(cases):
    @settings(max_examples=EXAMPLES)
    @given(cases, loops(), st.sampled_from(["auto", "last_finish"]), st.integers(0, 3000))
    def agree(case, loop, window, warmup_ps):
        (leaping, judged), (stepping, _) = (
            run_loop(case, loop, stepwise=stepwise, window=window, warmup_ps=warmup_ps) for stepwise in (False, True)
        )
        assert everything(leaping) == everything(stepping)
        plain, judged = run_loop(case, loop)
        for law in LAWS:
            law(judged, plain)

    agree()


def test_the_loops_meet_answers_that_are_found_again_failures_and_retries():
    """The law above would hold of loops in which nothing ever follows anything as well."""
    met = dict.fromkeys(("followed", "hit", "failed", "several at once"), 0)

    @settings(max_examples=EXAMPLES)
    @given(scenarios(allocators=("paged",)), loops())
    def count(case, loop):
        log, _ = run_loop(case | {"allocator": "prefix"}, loop)
        ended = log.recording.requests.ended
        starts = [record.arrival_ps for record in ended]
        met["followed"] += len(ended) > 4
        met["hit"] += any(record.hit_tokens > 8 for record in ended)
        met["failed"] += any(record.end != "finished" for record in ended)
        met["several at once"] += len(set(starts)) < len(starts)

    count()
    assert all(times >= 5 for times in met.values()), met


TIMING = CaseTiming({"base_ps": 1000, "token_ps": 0, "context_ps": 0, "copied_ps": 0})
ROOMY = {
    "allocator": "paged",
    "pool_slots": 4096,
    "block_size": 4,
    "watermark": 0.0,
    "max_num_seqs": 64,
    "max_num_batched_tokens": 512,
    "max_model_len": 1000,
    "long_prefill_token_threshold": 0,
    "chunked_prefill": True,
    "reserve_full_isl": True,
}


def serve(requests, after, **case):
    options = {key: case.pop(key) for key in ("horizon_ps", "window", "on_end") if key in case}
    return simulate(requests, scheduler_of(ROOMY | case), TIMING, max_model_len=1000, after=after, **options)


def test_a_request_that_follows_comes_when_it_says_and_the_window_ends_with_the_last():
    def after(number, end_ps, end, tokens):
        assert (end, tokens) == ("finished", 3)
        return [Request(number + 1, end_ps + 500, 10, 3)] if number < 4 else []

    log = serve([Request(0, 0, 10, 3)], after)
    ended = log.recording.requests.ended
    assert [record.arrival_ps for record in ended] == [0, 3500, 7000, 10500, 14000]
    assert log.last_arrival_ps == 14000
    assert log.recording.memory.closed.time_ps == 14000


def test_one_that_follows_at_once_takes_part_in_the_plan_after_the_next():
    log = serve([Request(0, 0, 10, 1), Request(1, 0, 10, 50)], lambda number, end_ps, *_: (
        [Request(2, end_ps, 10, 1)] if number == 0 else []))  # fmt: skip
    by_id = {record.id: record for record in log.recording.requests.ended}
    assert by_id[2].arrival_ps == 1000
    assert by_id[2].first_scheduled_ps == 2000


def test_a_rejected_request_is_answered_too():
    ends = []

    def after(number, end_ps, end, tokens):
        ends.append(end)
        return [Request(number + 1, end_ps + 10, 10, 1)] if number == 0 else []

    serve([Request(0, 5, 5000, 1)], after)
    assert ends == ["rejected", "finished"]


def test_at_the_horizon_nothing_follows_any_more():
    def after(number, end_ps, end, tokens):
        return [Request(number + 1, end_ps + 10, 10, 5)] if end == "finished" else []

    log = serve([Request(0, 0, 10, 5)], after, horizon_ps=52_000)
    assert [record.end for record in log.recording.requests.ended] == ["finished"] * 10 + ["unfinished"]
    assert log.end_ps == 52_000


def test_progress_is_told_of_every_end():
    seen = []
    serve([Request(0, 0, 10, 5)], lambda number, *_: [Request(number + 1, 10**6, 5, 5)] if number < 2 else [],
          on_end=lambda record: seen.append(record.id))  # fmt: skip
    assert seen == [0, 1, 2]


def test_what_comes_out_of_order_by_itself_is_refused():
    with pytest.raises(InputError, match="request 1 arrives before the one ahead of it"):
        serve([Request(0, 5000, 10, 5), Request(1, 10, 10, 5)], lambda *_: [])


@pytest.mark.parametrize("allocator", ["paged", "prefix", "contiguous", "reserve"])
def test_the_same_seed_gives_the_same_requests_under_every_allocator(allocator):
    laws = SessionLaws(
        prompt_tokens=Uniform(min=50, max=200),
        output_tokens=Uniform(min=5, max=50),
        turns=Uniform(min=1, max=6),
        new_tokens=Uniform(min=5, max=60),
        think_ms=Uniform(min=1, max=20),
        agents=Agents(share=0.3),
    )
    runs = []
    for case in ({"allocator": "paged", "max_num_seqs": 2}, {"allocator": allocator, "pool_slots": 2048, "chunk": 64}):
        traffic = SessionTraffic(laws, clients=ClientLoop(clients=6), requests=150)
        workload = Workload(traffic, seed=11)
        log = serve(workload, workload.after, **case)
        runs.append({r.id: (r.prompt_tokens, r.output_tokens) for r in log.recording.requests.ended})
        assert len(runs[-1]) == 150
    assert runs[0] == runs[1]


def test_clients_that_are_always_refused_do_not_stop_the_clock():
    laws = SessionLaws(prompt_tokens=Constant(value=5000), output_tokens=Constant(value=1))
    workload = Workload(SessionTraffic(laws, clients=ClientLoop(clients=3)))
    log = serve(workload, workload.after, horizon_ps=5 * PS_PER_S + 1)
    assert log.recording.requests.arrived == 18
    assert {record.end for record in log.recording.requests.ended} == {"rejected"}
