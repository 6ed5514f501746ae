"""The tables of a run: rows that a hand can check, and the same run whether it leaps or steps."""

from typing import Any

import pytest
from hypothesis import given, settings

from kvsim.metrics.memory import Batch, Beside, MemoryRecorder, Ramp
from kvsim.metrics.requests import RequestLog
from kvsim.metrics.result import COLUMNS
from kvsim.metrics.tables import Tables
from kvsim.metrics.window import Occupancy
from kvsim.request import Request
from kvsim.step import CLASSES, PoolUse
from tests.laws.cases import run_case
from tests.laws.strategies import scenarios

S = 10**12
POOL = 100


class Regions:
    """Levels of a leap: two sequences, 20 slots written and 40 not."""

    bound = 40

    def use_at(self, step: int) -> PoolUse:
        return PoolUse(20 + 2 * step, 40 - 2 * step, 0, 0, 0, 40, 40)

    def unwritten_sum(self, steps: int, a: int, b: int) -> int:
        return sum((a + b * step) * (40 - 2 * step) for step in range(steps))

    def unwritten_peak(self, first: int, last: int) -> int:
        return 40 - 2 * first


def tables(log: RequestLog, memory: MemoryRecorder) -> Tables:
    return Tables(log, memory)


def rows(table: dict[str, list[Any]]) -> list[dict[str, Any]]:
    assert len({len(column) for column in table.values()}) == 1
    return [dict(zip(table, values, strict=True)) for values in zip(*table.values(), strict=True)]


@pytest.fixture
def small() -> Tables:
    """A step at 5 s of 10 s, a leap at 20 s over steps of 10, 12 and 14 s, and a step that the horizon cuts."""
    memory = MemoryRecorder(POOL, Occupancy())
    use = PoolUse(10, 6, 0, 0, 0, 84, 84)
    memory.step(5 * S, 10 * S, 0, use, Beside(0), Batch(30, 1, 0, 12, 2, 3, 2, 2))
    memory.leap(20 * S, Ramp(10 * S, 2 * S), 3, 1, Regions(), Beside(4), Batch(0, 2, 0, 22, 2, 1, 2, 2))
    memory.stop(56 * S, 60 * S, 4, use, Beside(0), Batch(8, 2, 0, 50, 3, 0, 3, 3))
    memory.finish(60 * S)
    return tables(RequestLog(), memory)


def test_there_are_five_tables_with_the_columns_of_the_result(small):
    assert list(small) == list(COLUMNS)
    assert len(small) == 5
    for name, columns in COLUMNS.items():
        assert list(small[name]) == list(columns)


def test_a_table_is_made_once(small):
    assert small["memory"] is small["memory"]


def test_a_row_of_steps_sums_over_its_leap_and_a_cut_step_computes_nothing(small):
    first, leap, cut = rows(small["steps"])
    assert first == {
        "start_s": 5.0,
        "duration_s": 10.0,
        "steps": 1,
        "prefill_tokens": 30,
        "decode_tokens": 1,
        "padding_tokens": 0,
        "context_tokens": 12,
        "running": 2,
        "waiting": 3,
        "request_s": 0.0,
    }
    assert (leap["start_s"], leap["duration_s"], leap["steps"]) == (20.0, 36.0, 3)
    assert (leap["prefill_tokens"], leap["decode_tokens"]) == (0, 6)
    assert leap["context_tokens"] == 22 + 24 + 26
    assert (cut["start_s"], cut["duration_s"], cut["steps"]) == (56.0, 4.0, 0)
    assert (cut["prefill_tokens"], cut["decode_tokens"], cut["context_tokens"]) == (0, 0, 0)


def test_memory_has_a_row_for_each_step_each_idle_stretch_and_the_end(small):
    found = rows(small["memory"])
    assert [row["time_s"] for row in found] == [0.0, 5.0, 15.0, 20.0, 56.0, 60.0]
    assert [row["used"] for row in found] == [0, 10, 0, 20, 10, 0]
    assert [row["free"] for row in found] == [100, 84, 100, 36, 84, 100]
    assert [row["running"] for row in found] == [0, 2, 0, 2, 3, 0]
    assert [row["waiting"] for row in found] == [0, 3, 0, 1, 0, 0]
    assert all(sum(row[name] for name in CLASSES) == POOL for row in found)


def test_a_run_that_never_computed_anything_has_one_row_of_memory():
    found = tables(RequestLog(), MemoryRecorder(POOL, Occupancy()))
    assert rows(found["memory"]) == [
        {"time_s": 0.0, **dict.fromkeys(CLASSES, 0), "free": POOL, "running": 0, "waiting": 0}
        | {"host": 0, "shared": 0, "duplicate": 0, "largest_hole": POOL, "fragmentation": None, "unusable": None}
    ]
    assert rows(found["steps"]) == []


def run_of(case: dict[str, Any], *, stepwise: bool) -> tuple[Tables, Any]:
    log = run_case(case, stepwise=stepwise)
    return tables(log.recording.requests, log.recording.memory), log


ONE_REQUEST = {
    "allocator": "paged",
    "pool_slots": 64,
    "block_size": 16,
    "watermark": 0.0,
    "reserve_full_isl": True,
    "max_num_seqs": 4,
    "max_num_batched_tokens": 64,
    "max_model_len": 64,
    "long_prefill_token_threshold": 0,
    "chunked_prefill": True,
    "horizon_ps": None,
    "step_time": {"base_ps": S, "token_ps": 0, "context_ps": 0, "copied_ps": 0},
}


def test_a_request_in_the_table_has_its_lengths_times_and_end():
    requests = [
        Request(0, 2 * S, 20, 4, tenant="a", priority=1, slo_class="gold", session=7, turn=2),
        Request(1, 2 * S, 20, 9, max_tokens=1),
        Request(2, 3 * S, 70, 5),
    ]
    found, _ = run_of(ONE_REQUEST | {"requests": requests}, stepwise=False)
    first, second, third = rows(found["requests"])
    assert first == {
        "id": 0,
        "arrival_s": 2.0,
        "prompt_tokens": 20,
        "output_tokens": 4,
        "max_tokens": None,
        "priority": 1,
        "tenant": "a",
        "slo_class": "gold",
        "session": 7,
        "turn": 2,
        "first_scheduled_s": 2.0,
        "first_token_s": 3.0,
        "end_s": 6.0,
        "end": "finished",
        "finish_reason": "eos",
        "generated_tokens": 4,
        "preemptions": 0,
        "lost_tokens": 0,
        "recomputed_tokens": 0,
        "swapped_tokens": 0,
        "hit_tokens": 0,
        "rehit_tokens": 0,
        "hit_system_tokens": 0,
        "hit_group_tokens": 0,
        "hit_session_tokens": 0,
        "hit_own_tokens": 0,
        "hit_unknown_tokens": 0,
        "regret_tokens": 0,
        "samples": 1,
        "queue_s": 0.0,
        "prefill_s": 1.0,
        "ttft_s": 1.0,
        "tpot_s": 1.0,
        "e2e_s": 4.0,
        "replica": 0,
    }
    assert (second["output_tokens"], second["max_tokens"], second["finish_reason"]) == (1, 1, "max_tokens")
    assert (second["tpot_s"], second["e2e_s"]) == (None, 1.0)
    assert [second[name] for name in ("tenant", "slo_class", "session", "turn")] == [None] * 4
    assert (third["end"], third["finish_reason"], third["first_scheduled_s"]) == ("rejected", None, None)
    assert (third["queue_s"], third["prefill_s"], third["ttft_s"]) == (None, None, None)
    assert rows(found["events"]) == [
        {
            "time_s": 3.0,
            "request": 2,
            "cause": "never",
            "outcome": "reject",
            "need_tokens": 80,
            "free_tokens": 0,
            "largest_hole_tokens": 0,
        }
    ]


def test_a_rejected_request_has_no_output_below_zero_and_clips_nothing():
    found, log = run_of(ONE_REQUEST | {"requests": [Request(0, 0, 70, 5)]}, stepwise=False)
    [only] = rows(found["requests"])
    assert only["end"] == "rejected"
    assert only["output_tokens"] >= 0
    assert log.recording.requests.clipped == 0  # an output is clipped only where a request runs


@settings(max_examples=80)
@given(scenarios())
def test_a_leaping_and_a_stepwise_run_have_the_same_tables_where_they_must(case):
    leaping, one = run_of(case, stepwise=False)
    stepping, two = run_of(case, stepwise=True)
    assert leaping["requests"] == stepping["requests"]
    assert leaping["events"] == stepping["events"]
    for name in ("steps", "prefill_tokens", "decode_tokens", "context_tokens"):
        assert sum(leaping["steps"][name]) == sum(stepping["steps"][name]), name
    assert sum(leaping["steps"]["steps"]) == one.recording.memory.steps == two.recording.memory.steps
    # Every row of the leaping run is a row of the other one, with the same levels.
    levels = {row["time_s"]: row for row in rows(stepping["memory"])}
    for row in rows(leaping["memory"]):
        assert levels[row["time_s"]] == row
    assert all(sum(row[name] for name in CLASSES) == one.recording.memory.pool_slots for row in levels.values())


@settings(max_examples=60)
@given(scenarios())
def test_the_tokens_of_the_steps_are_those_of_the_requests(case):
    found, log = run_of(case, stepwise=False)
    ended = log.recording.requests.ended
    decoded = sum(found["steps"]["decode_tokens"])
    # A request's first token comes from its prompt, and so does the first one after each preemption.
    prompts_done = sum(r.generated_tokens > 0 for r in ended)
    assert decoded <= sum(r.generated_tokens for r in ended) - prompts_done
    if not log.recording.requests.preemptions:
        assert decoded == sum(r.generated_tokens for r in ended) - prompts_done
        assert sum(found["steps"]["prefill_tokens"]) <= sum(r.prompt_tokens for r in ended)


@settings(max_examples=60)
@given(scenarios())
def test_rows_of_memory_never_go_back_in_time(case):
    found, log = run_of(case, stepwise=False)
    times = found["memory"]["time_s"]
    assert times == sorted(set(times))
    assert times[-1] <= log.end_ps / 1e12
