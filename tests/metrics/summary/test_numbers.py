"""The metrics of the JSON contract, on runs so small that a hand can check them."""

import json
from array import array
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvsim.metrics.histogram import DurationHistogram
from kvsim.metrics.memory import Batch, Beside, MemoryRecorder
from kvsim.metrics.requests import Ended, Journey, Loss, RequestLog
from kvsim.metrics.result import to_json
from kvsim.metrics.summary import Moved, Run, Slo, measured, metrics, pools, shares, spread
from kvsim.metrics.window import Occupancy
from kvsim.request import Request, Sequence
from kvsim.step import CAUSES, CLASSES, ENDS, PoolUse, Short
from tests.laws.cases import run_case

S = 10**12
MS = 10**9

CONTRACT = {
    "pool_tokens", "pool_blocks", "mean_share", "peak_share", "mean_running", "max_running", "mean_waiting",
    "arrived", "finished", "rejected", "cancelled", "aborted", "unfinished", "preemptions", "lost_tokens",
    "recomputed_tokens", "copied_bytes", "duplicate_share", "blocked", "hit_rate", "queue_s", "ttft_s", "tpot_s",
    "itl_s", "e2e_s", "output_tokens_per_s", "requests_per_s", "goodput_per_s", "slo_classes", "simulated_s", "steps",
}  # fmt: skip
"""The keys that the issue promises; more may be added, none taken away."""


SMALL = {
    "pool_slots": 96,
    "block_size": 4,
    "chunk": 8,
    "watermark": 0.0,
    "reserve_full_isl": True,
    "max_num_seqs": 6,
    "max_num_batched_tokens": 32,
    "max_model_len": 32,
    "long_prefill_token_threshold": 0,
    "chunked_prefill": True,
    "horizon_ps": None,
    "step_time": {"base_ps": 900, "token_ps": 3, "context_ps": 1, "copied_ps": 5},
}


def run_of(case: dict[str, Any], *, window: str, warmup_ps: int = 0) -> Run:
    log = run_case(case, stepwise=False, window=window, warmup_ps=warmup_ps)
    recording = log.recording
    return Run(
        requests=recording.requests,
        memory=recording.memory,
        gaps=recording.gaps.histogram,
        end_ps=log.end_ps,
        last_arrival_ps=log.last_arrival_ps,
        block_size=None,
        window=window,
        slo=Slo(ttft_ps=10**6),
        warmup_ps=warmup_ps,
    )


def ended(number: int = 0, arrival_s: float = 0, end_s: float = 10, **other: Any) -> Ended:
    """A request that got its first token 1 s after its arrival and 10 tokens in all, unless it is told otherwise."""
    fields = {
        "id": number,
        "arrival_ps": int(arrival_s * S),
        "prompt_tokens": 100,
        "output_tokens": 10,
        "max_tokens": None,
        "priority": 0,
        "tenant": "",
        "first_scheduled_ps": int((arrival_s + 0.25) * S),
        "first_token_ps": int((arrival_s + 1) * S),
        "end_ps": int(end_s * S),
        "end": "finished",
        "finish_reason": "eos",
        "generated_tokens": 10,
        "preemptions": 0,
        "lost_tokens": 0,
        "recomputed_tokens": 0,
    }
    return Ended(**{**fields, **other})


def made_run(
    records: list[Ended],
    *,
    end_s: float = 100,
    last_arrival_s: float = 0,
    window: str = "auto",
    slo: Slo | None = None,
    opens_s: float = 0,
    closes_s: float | None = None,
    steps: tuple[tuple[float, float, int], ...] = (),
) -> Run:
    """A run of `records`; `steps` are (start, duration, waiting), with 40 of 100 slots used and 2 tokens each."""
    log = RequestLog(classes=tuple(slo.classes) if slo else ())
    log.ended, log.arrived = records, len(records)
    memory = MemoryRecorder(100, Occupancy(), window=window)
    if opens_s:
        memory.open(int(opens_s * S))
    if closes_s is not None:
        memory.close(int(closes_s * S))
    for start_s, duration_s, waiting in steps:
        use = PoolUse(40, 10, 0, 0, 0, 50, 50)
        memory.step(int(start_s * S), int(duration_s * S), 0, use, Beside(0), Batch(0, 2, 0, 42, 2, waiting, 2, 2))
    memory.finish(int(end_s * S))
    return Run(
        requests=log,
        memory=memory,
        gaps=DurationHistogram(),
        end_ps=int(end_s * S),
        last_arrival_ps=int(last_arrival_s * S),
        moved=Moved(7),
        block_size=None,
        window=window,
        slo=slo or Slo(),
    )


def test_every_key_of_the_contract_is_there_and_json_holds_it():
    found = metrics(made_run([ended()]))
    assert set(found) >= CONTRACT
    assert set(found["mean_share"]) == set(found["peak_share"]) == set(CLASSES)
    assert set(found["blocked"]) == set(CAUSES)
    assert set(found) >= set(ENDS)
    assert set(found["ttft_s"]) == {"mean", "p50", "p90", "p95", "p99", "max"}
    assert json.loads(to_json(found))["ttft_s"]["p50"] == 1.0


def test_a_number_that_does_not_exist_is_none():
    found = metrics(made_run([ended(end="rejected", first_token_ps=None, first_scheduled_ps=None)]))
    for key in ("queue_s", "prefill_s", "ttft_s", "tpot_s", "itl_s", "e2e_s", "goodput_per_s", "hit_rate"):
        assert found[key] is None, key
    assert (found["pool_blocks"], found["fragmentation"], found["unusable_share"]) == (None, None, None)
    assert found["requests_per_s"] == found["output_tokens_per_s"] == 0


def test_a_run_without_any_time_has_no_shares_and_no_rates():
    found = metrics(made_run([ended(end="rejected", end_s=0)], end_s=0))
    assert set(found["mean_share"].values()) == {None}
    assert set(found["peak_share"].values()) == {0.0}
    for key in ("mean_running", "mean_waiting", "output_tokens_per_s", "requests_per_s"):
        assert found[key] is None, key
    to_json(found)


def test_gaps_between_tokens_are_none_where_no_time_was_measured():
    run = replace(made_run([ended()], end_s=10, opens_s=20), warmup_ps=20 * S)
    run.gaps.add(5 * MS, 3)
    assert metrics(run)["itl_s"] is None
    measured_run = made_run([ended()], end_s=10)
    measured_run.gaps.add(5 * MS, 3)
    assert metrics(measured_run)["itl_s"]["mean"] == 0.005


def test_ends_and_losses_are_counted_over_the_whole_run():
    records = [ended(number, end=end) for number, end in enumerate((*ENDS, "finished"))]
    records[0] = records[0]._replace(lost_tokens=5, recomputed_tokens=4)
    records[4] = records[4]._replace(lost_tokens=3, recomputed_tokens=1)
    run = made_run(records, opens_s=50)
    run.requests.losses, run.requests.clipped = [Loss(1, 0, 5), Loss(2, 1, 3)], 1
    found = metrics(run)
    assert [found[end] for end in ENDS] == [2, 1, 1, 1, 1]
    assert found["arrived"] == 6 == sum(found[end] for end in ENDS)
    assert (found["preemptions"], found["lost_tokens"], found["recomputed_tokens"]) == (2, 8, 5)
    assert (found["clipped_outputs"], found["copied_bytes"]) == (1, 7)


def test_blocked_allocations_are_counted_by_cause():
    run = made_run([ended()])
    for number, cause in enumerate(("capacity", "never", "capacity")):
        journey = Journey(Request(number, 0, 1, 1), Sequence(number, 1, None), 1, "eos")
        run.requests.blocked(0, journey, Short(cause, 1, 0, 0), "wait")
    blocked = metrics(run)["blocked"]
    assert blocked == {"capacity": 2, "never": 1, "fragmentation": 0, "outgrown": 0, "activation": 0, "queue": 0}


def test_latencies_are_what_their_names_say():
    found = metrics(made_run([ended(0, arrival_s=3, end_s=13)]))
    for key, value in (
        ("queue_s", 0.25),  # arrival to first scheduled
        ("prefill_s", 0.75),  # first scheduled to first token
        ("ttft_s", 1.0),
        ("tpot_s", 9.0 / 9),  # (E2E - TTFT) / (10 tokens - 1)
        ("e2e_s", 10.0),
    ):
        assert found[key]["mean"] == found[key]["p99"] == found[key]["max"] == value, key


def test_a_request_of_one_token_has_no_time_per_output_token():
    assert metrics(made_run([ended(generated_tokens=1, end_s=1)]))["tpot_s"] is None


def test_an_unfinished_request_has_a_first_token_but_neither_tpot_nor_e2e():
    found = metrics(made_run([ended(end="unfinished", finish_reason=None)]))
    assert found["ttft_s"]["max"] == 1.0
    assert found["tpot_s"] is None
    assert found["e2e_s"] is None


@given(st.lists(st.integers(0, 10**15), min_size=1, max_size=50))
def test_percentiles_are_numpys_linear_ones(values):
    found = spread(array("q", values))
    assert found is not None
    for percent in (50, 90, 95, 99):
        exact = np.percentile(np.array(values, dtype=float), percent, method="linear") / S
        assert found[f"p{percent}"] == pytest.approx(exact, rel=1e-12, abs=1e-18)
    assert found["mean"] == pytest.approx(sum(values) / len(values) / S, rel=1e-12)
    assert found["max"] == max(values) / S


@given(st.lists(st.integers(0, 2**62), min_size=3, max_size=50))
def test_many_values_have_the_spread_that_few_would_have_to_the_bit(values):
    sevenths = [value / 7 for value in values]
    few = spread(array("q", values)), spread(array("d", sevenths))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kvsim.metrics.summary.values._MANY", 3)
        assert (spread(array("q", values)), spread(array("d", sevenths))) == few


def test_times_that_a_request_never_came_to_are_left_out_of_a_spread():
    never = {"first_scheduled_ps": None, "first_token_ps": None, "end": "cancelled"}
    found = metrics(made_run([ended(0, **never), ended(1), ended(2, **never)], end_s=10))
    assert (found["ttft_s"]["mean"], found["ttft_s"]["p50"], found["ttft_s"]["max"]) == (1.0, 1.0, 1.0)
    assert metrics(made_run([ended(0, **never)], end_s=10))["ttft_s"] is None
    assert spread(array("q")) is None


def test_the_gaps_between_tokens_have_an_exact_mean_and_maximum():
    gaps = DurationHistogram()
    gaps.add(20 * MS, 98)
    gaps.add(1 * S, 2)
    found = gaps.spread(S)
    assert found is not None
    assert found["mean"] == pytest.approx((98 * 0.02 + 2) / 100, rel=1e-15)
    assert found["max"] == 1.0
    assert found["p50"] == pytest.approx(0.02, rel=0.005)
    assert found["p99"] == pytest.approx(1.0, rel=0.005)


# The measured window.


def test_shares_are_weighted_with_time_and_end_at_the_last_arrival():
    run = made_run([ended()], end_s=20, last_arrival_s=10, closes_s=10, steps=((5, 10, 0),))
    assert measured(run)[:2] == (0, 10 * S)
    found = metrics(run)
    # Idle for 5 s, then 5 s of the step: 40 of 100 slots used, 10 reserved.
    assert found["mean_share"]["used"] == 0.4 * 0.5
    assert found["mean_share"]["reserved"] == 0.1 * 0.5
    assert found["mean_share"]["free"] == 1 * 0.5 + 0.5 * 0.5
    assert found["peak_share"]["used"] == 0.4
    assert found["mean_running"] == 2 * 0.5
    assert found["output_tokens_per_s"] == 0  # the step's tokens come after the last arrival
    assert found["window_s"] == [0, 10]
    assert found["simulated_s"] == 20


@pytest.mark.parametrize(("last_arrival_s", "closes_s"), [(10, 10), (9.999, 100), (0, 100)])
def test_where_arrivals_span_less_than_a_tenth_of_the_run_it_is_measured_to_the_last_finish(last_arrival_s, closes_s):
    run = made_run([ended()], end_s=100, last_arrival_s=last_arrival_s, closes_s=last_arrival_s)
    assert metrics(run)["window_s"] == [0, closes_s]


def test_the_tenth_counts_from_the_end_of_the_warm_up():
    # From 50 s on: arrivals span 4 s of the 50 s that are left.
    run = made_run([ended()], end_s=100, last_arrival_s=54, closes_s=54, opens_s=50)
    assert metrics(run)["window_s"] == [50, 100]


def test_last_finish_measures_to_the_end():
    run = made_run([ended()], end_s=20, last_arrival_s=10, closes_s=10, window="last_finish")
    assert metrics(run)["window_s"] == [0, 20]


def test_latencies_are_of_the_requests_that_arrive_in_the_window_drained():
    records = [
        ended(0, arrival_s=4, end_s=12, first_token_ps=11 * S),  # arrives in the warm-up
        ended(1, arrival_s=5, end_s=9),
        ended(2, arrival_s=10, end_s=40),  # ends after the window
    ]
    run = made_run(records, end_s=40, last_arrival_s=10, opens_s=5, closes_s=10)
    found = metrics(run)
    assert found["window_s"] == [5, 10]
    assert found["e2e_s"]["mean"] == (4 + 30) / 2
    assert found["ttft_s"]["max"] == 1.0


def test_rates_are_of_what_comes_out_in_the_window():
    records = [ended(0, 0, 5), ended(1, 1, 6), ended(2, 2, 10), ended(3, 10, 11)]
    run = made_run(records, end_s=12, last_arrival_s=10, opens_s=5, closes_s=10, slo=Slo(e2e_ps=6 * S))
    found = metrics(run)
    # Requests 1 and 2 end in (5 s, 10 s]; the one that ends as the window opens belongs to the step before.
    assert found["requests_per_s"] == 2 / 5
    assert found["goodput_per_s"] == 1 / 5  # request 2 took 8 s


def test_goodput_is_at_most_the_rate_of_finished_requests():
    # Everything finishes after the last arrival: nothing comes out in the window, good or not.
    records = [ended(number, number, 50 + number) for number in range(10)]
    found = metrics(made_run(records, end_s=60, last_arrival_s=9, closes_s=9, slo=Slo(ttft_ps=100 * S)))
    assert (found["requests_per_s"], found["goodput_per_s"]) == (0, 0)


def test_a_saturated_window_measures_only_while_the_queue_is_not_empty():
    steps = ((0, 10, 0), (10, 5, 1), (15, 5, 3), (20, 10, 0), (30, 10, 1))
    records = [
        ended(0, 0, 10),  # ends as the queue begins to fill: before the stretch
        ended(1, 12, 20),
        ended(2, 5, 25),  # between two stretches
        ended(3, 25, 40),
    ]
    run = made_run(records, end_s=50, last_arrival_s=25, window="saturated", steps=steps, slo=Slo(e2e_ps=9 * S))
    found = metrics(run)
    assert found["requests_per_s"] == 2 / 20
    assert found["goodput_per_s"] == 1 / 20
    assert found["output_tokens_per_s"] == 3 * 2 / 20
    assert found["mean_running"] == 2
    assert found["mean_share"]["used"] == 0.4
    assert found["e2e_s"]["mean"] == 8  # only request 1 arrived while others waited


def test_a_queue_that_is_never_left_full_has_nothing_saturated():
    found = metrics(made_run([ended()], window="saturated", steps=((0, 10, 0),)))
    assert found["requests_per_s"] is None
    assert found["e2e_s"] is None
    assert set(found["mean_share"].values()) == {None}


# Service level objectives.


@pytest.mark.parametrize(
    ("slo", "good"),
    [
        (Slo(ttft_ps=1 * S), True),
        (Slo(ttft_ps=1 * S - 1), False),
        (Slo(e2e_ps=10 * S), True),
        (Slo(e2e_ps=10 * S - 1), False),
        (Slo(tpot_ps=1 * S), True),
        (Slo(tpot_ps=1 * S - 1), False),
        (Slo(ttft_ps=1 * S, tpot_ps=1 * S, e2e_ps=10 * S), True),
        (Slo(ttft_ps=1 * S, tpot_ps=1 * S, e2e_ps=10 * S - 1), False),
    ],
)
def test_a_request_is_good_when_it_meets_every_goal_to_the_picosecond(slo, good):
    assert slo.met(1 * S, 10 * S, 9) == good
    found = metrics(made_run([ended()], end_s=10, slo=slo))
    assert found["goodput_per_s"] == (0.1 if good else 0)


def test_a_single_token_meets_any_goal_for_the_time_per_output_token():
    assert Slo(tpot_ps=1).met(1 * S, 1 * S, 0)


def test_only_finished_requests_are_good():
    records = [ended(number, end=end) for number, end in enumerate(ENDS)]
    found = metrics(made_run(records, end_s=10, slo=Slo(ttft_ps=100 * S)))
    assert found["goodput_per_s"] == 0.1


def test_without_a_goal_there_is_no_goodput():
    assert not Slo().any
    assert Slo(tpot_ps=1).any
    assert metrics(made_run([ended()]))["goodput_per_s"] is None


# Pools.


def test_the_one_pool_is_keyed_and_has_the_same_shares():
    run = made_run([ended()], end_s=20, steps=((5, 10, 0),))
    [pool] = pools(run)
    assert [pool[key] for key in ("replica", "rank", "tier", "group")] == [0, 0, "gpu", 0]
    assert (pool["tokens"], pool["blocks"]) == (100, None)
    assert pool["mean_share"] == metrics(run)["mean_share"]
    assert pool["peak_share"] == metrics(run)["peak_share"]


def test_shares_of_nothing_do_not_exist():
    assert set(shares([0] * 8, 0).values()) == {None}


@pytest.mark.parametrize(
    ("window", "running", "waiting"), [("last_finish", 1, 3 / 6), ("saturated", 1, 1)], ids=["whole", "saturated"]
)
def test_who_waits_is_who_is_there_and_does_not_run(window, running, waiting):
    # Two requests arrive at 0, one runs at a time, each for three steps of a second: the second waits for 3 of 6 s.
    requests = [Request(number, 0, 5, 3) for number in range(2)]
    case = SMALL | {"requests": requests, "allocator": "paged", "max_num_seqs": 1}
    case["step_time"] = {"base_ps": S, "token_ps": 0, "context_ps": 0, "copied_ps": 0}
    found = metrics(run_of(case, window=window))
    assert (found["mean_running"], found["mean_waiting"]) == (running, waiting)
    assert found["queue_s"]["max"] == 3


@pytest.mark.parametrize("allocator", ["paged", "contiguous", "reserve"])
@pytest.mark.parametrize("window", ["auto", "last_finish", "saturated"])
def test_the_mean_shares_of_a_run_add_up_to_one(allocator, window):
    requests = [Request(number, number * 700, 5 + number % 7, 3 + number % 11) for number in range(40)]
    case = SMALL | {"requests": requests, "allocator": allocator}
    found = metrics(run_of(case, window=window, warmup_ps=1234))
    assert sum(found["mean_share"].values()) == pytest.approx(1, abs=1e-12)
    assert all(0 <= found["mean_share"][name] <= found["peak_share"][name] <= 1 for name in CLASSES)
    assert 0 <= found["goodput_per_s"] <= found["requests_per_s"]
    assert found["mean_waiting"] >= 0
    assert found["mean_running"] <= found["max_running"] <= 6


def test_a_class_of_service_has_goals_of_its_own_and_is_told_apart():
    goals = Slo(e2e_ps=9 * S, classes={"gold": Slo(e2e_ps=4 * S), "batch": Slo(e2e_ps=50 * S)})
    records = [
        ended(0, 0, 3, slo_class="gold"),
        ended(1, 0, 8, slo_class="gold"),
        ended(2, 1, 41, slo_class="batch"),
        ended(3, 1, 9),
        ended(4, 1, 30),
        ended(5, 1, 20, slo_class="gold", end="aborted", finish_reason=None),
        ended(6, 1, 20, slo_class="unheard of"),
    ]
    found = metrics(made_run(records, end_s=50, slo=goals))
    assert found["goodput_per_s"] == 3 / 50
    gold, batch = found["slo_classes"]["gold"], found["slo_classes"]["batch"]
    assert (gold["arrived"], gold["finished"], gold["met_share"], gold["goodput_per_s"]) == (3, 2, 1 / 3, 1 / 50)
    assert gold["e2e_s"]["mean"] == 5.5
    assert (batch["arrived"], batch["finished"], batch["met_share"], batch["goodput_per_s"]) == (1, 1, 1.0, 1 / 50)


def test_without_goals_of_their_own_no_class_is_told_apart():
    found = metrics(made_run([ended(slo_class="gold")], end_s=10, slo=Slo(e2e_ps=50 * S)))
    assert found["slo_classes"] is None
    assert found["goodput_per_s"] == 0.1


def test_a_class_that_nobody_is_of_has_no_share():
    found = metrics(made_run([ended()], end_s=10, slo=Slo(classes={"gold": Slo(e2e_ps=1)})))
    assert found["slo_classes"]["gold"]["met_share"] is None
    assert found["slo_classes"]["gold"]["ttft_s"] is None
