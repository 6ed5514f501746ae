"""Memory over time: integrals by class that a hand can check, whatever window is measured and however time is cut."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvsim.errors import RunError
from kvsim.metrics.memory import SERIES, Batch, Beside, MemoryRecorder, Ramp
from kvsim.metrics.window import Occupancy, Totals
from kvsim.request import Request, Sequence
from kvsim.step import CLASSES, PoolUse
from tests.laws.cases import run_case

POOL = 100
USE = PoolUse(used=40, unwritten=25, dead=0, moving=0, cached=0, free=35, largest_hole=35)
BATCH = Batch(
    prefill_tokens=0, decode_tokens=2, padding_tokens=0, context_tokens=42, running=2, waiting=0, tokens=2, requests=2
)


class Regions:
    """Two sequences in regions that do not grow: what is not written falls by two a step. No closed form here."""

    def __init__(self, used: int = 20, unwritten: int = 40) -> None:
        self.used, self.unwritten = used, unwritten
        self.bound = unwritten

    def use_at(self, step: int) -> PoolUse:
        free = POOL - self.used - self.unwritten
        return PoolUse(self.used + 2 * step, self.unwritten - 2 * step, 0, 0, 0, free, free)

    def unwritten_sum(self, steps: int, a: int, b: int) -> int:
        return sum((a + b * step) * (self.unwritten - 2 * step) for step in range(steps))

    def unwritten_peak(self, first: int, last: int) -> int:
        return max(self.unwritten - 2 * step for step in range(first, last))


def recorder(window: str = "auto") -> MemoryRecorder:
    return MemoryRecorder(POOL, Occupancy(), window=window)


def integrals(totals: Totals | None) -> dict[str, int]:
    assert totals is not None
    assert sum(totals.slots_ps) == POOL * totals.time_ps
    return {name: amount for name, amount in zip(CLASSES, totals.slots_ps, strict=True) if amount}


def peaks(totals: Totals) -> dict[str, int]:
    return {name: peak for name, peak in zip(CLASSES, totals.peaks, strict=True) if peak}


def decoding(number: int) -> Sequence:
    return Sequence(number, 10, None, decoding=True, admission=number)


def test_levels_hold_for_as_long_as_the_step_lasts_and_idle_time_is_free():
    memory = recorder()
    memory.step(10, 20, 0, USE, Beside(5), BATCH)
    memory.finish(50)
    assert integrals(memory.totals) == {
        "used": 40 * 20,
        "reserved": 25 * 20,
        "external": 5 * 20,
        "free": POOL * (10 + 20) + 30 * 20,
    }
    assert peaks(memory.totals) == {"used": 40, "reserved": 25, "external": 5, "free": POOL}
    assert (memory.totals.time_ps, memory.totals.running_ps, memory.totals.tokens) == (50, 2 * 20, 2)
    assert (memory.totals.max_running, memory.steps) == (2, 1)


def test_every_class_that_the_allocator_knows_has_its_place():
    memory = recorder()
    use = PoolUse(used=1, unwritten=2, dead=4, moving=8, cached=16, free=69, largest_hole=69)
    memory.step(0, 1, 0, use, Beside(32), BATCH)
    assert dict(zip(CLASSES, memory.totals.slots_ps, strict=True)) == {
        "used": 1,
        "reserved": 2,
        "internal": 0,
        "dead": 4,
        "moving": 8,
        "cached": 16,
        "external": 32,
        "free": 37,
    }


def test_slots_that_will_never_be_written_are_internal_and_the_rest_is_reserved():
    memory, one, two = recorder(), decoding(0), decoding(1)
    memory.never_written.owns(one, 7)
    memory.never_written.owns(two, -3)  # it will write all it owns and three more
    memory.step(0, 10, 0, USE, Beside(0), BATCH)
    memory.never_written.owns(one, 9)  # it has grown
    memory.step(10, 10, 1, USE, Beside(0), BATCH)
    memory.never_written.gives_back(one)
    memory.never_written.gives_back(two)
    memory.step(20, 10, 2, USE, Beside(0), BATCH)
    found = integrals(memory.totals)
    assert found["internal"] == 7 * 10 + 9 * 10
    assert found["reserved"] == 25 * 30 - 160
    assert peaks(memory.totals)["internal"] == 9
    assert peaks(memory.totals)["reserved"] == 25


def test_slots_to_come_are_internal_from_the_step_that_takes_them():
    memory = recorder()
    memory.never_written.will_own(decoding(0), 2, 6)
    for step in range(4):
        memory.step(10 * step, 10, step, USE, Beside(0), BATCH)
    assert integrals(memory.totals)["internal"] == 6 * 20


def test_slots_to_come_never_come_for_a_sequence_that_was_preempted_meanwhile():
    memory, gone, back = recorder(), decoding(0), decoding(1)
    memory.never_written.will_own(gone, 2, 6)
    memory.never_written.will_own(back, 2, 5)
    gone.decoding = False
    back.admission = 9  # admitted again, its region is another one
    for step in range(4):
        memory.step(10 * step, 10, step, USE, Beside(0), BATCH)
    assert "internal" not in integrals(memory.totals)


def test_a_leap_is_integrated_step_by_step():
    memory = recorder()
    memory.never_written.will_own(decoding(0), 5 + 2, 6)
    memory.leap(0, Ramp(first_ps=10, rise_ps=2), 4, 5, Regions(), Beside(3), BATCH)  # steps of 10, 12, 14 and 16
    used = 20 * 10 + 22 * 12 + 24 * 14 + 26 * 16
    unwritten = 40 * 10 + 38 * 12 + 36 * 14 + 34 * 16
    internal = 6 * (14 + 16)
    assert integrals(memory.totals) == {
        "used": used,
        "reserved": unwritten - internal,
        "internal": internal,
        "external": 3 * 52,
        "free": 37 * 52,
    }
    assert peaks(memory.totals) == {"used": 26, "reserved": 40, "internal": 6, "external": 3, "free": 37}
    assert (memory.totals.tokens, memory.totals.running_ps, memory.steps) == (8, 2 * 52, 4)


def test_a_warm_up_that_ends_within_a_step_leaves_its_rest_and_its_tokens():
    memory = recorder()
    memory.step(0, 10, 0, USE, Beside(0), BATCH)
    memory.open(25)
    memory.step(10, 20, 1, USE, Beside(0), BATCH)
    assert memory.opened_ps == 25
    assert integrals(memory.totals) == {"used": 40 * 5, "reserved": 25 * 5, "free": 35 * 5}
    assert (memory.totals.tokens, memory.totals.time_ps, memory.steps) == (2, 5, 2)


def test_a_warm_up_that_ends_with_a_step_leaves_none_of_it():
    memory = recorder()
    memory.step(0, 10, 0, USE, Beside(0), BATCH)
    memory.open(10)
    memory.step(10, 20, 1, PoolUse(50, 0, 0, 0, 0, 50, 50), Beside(0), BATCH)
    assert integrals(memory.totals) == {"used": 50 * 20, "free": 50 * 20}
    assert peaks(memory.totals) == {"used": 50, "free": 50}
    assert memory.totals.tokens == 2


def test_a_warm_up_that_ends_within_a_leap_leaves_the_rest_of_that_step_and_the_steps_after():
    memory = recorder()
    memory.open(10 + 5)
    memory.leap(0, Ramp(10, 2), 4, 0, Regions(), Beside(0), BATCH)
    assert integrals(memory.totals) == {
        "used": 22 * 7 + 24 * 14 + 26 * 16,
        "reserved": 38 * 7 + 36 * 14 + 34 * 16,
        "free": 40 * 37,
    }
    assert memory.totals.tokens == 2 * 3
    assert peaks(memory.totals)["reserved"] == 38


def test_a_warm_up_that_ends_while_nothing_runs_leaves_the_rest_of_the_idle_time():
    memory = recorder()
    memory.open(4)
    memory.step(10, 20, 0, USE, Beside(0), BATCH)
    assert memory.totals.time_ps == 26
    assert integrals(memory.totals)["free"] == POOL * 6 + 35 * 20


def test_the_last_arrival_within_a_leap_freezes_the_sums_up_to_then():
    memory = recorder()
    memory.close(10 + 12 + 7)
    memory.leap(0, Ramp(10, 2), 4, 0, Regions(), Beside(0), BATCH)
    assert integrals(memory.closed) == {
        "used": 20 * 10 + 22 * 12 + 24 * 7,
        "reserved": 40 * 10 + 38 * 12 + 36 * 7,
        "free": 40 * 29,
    }
    assert memory.closed is not None
    assert memory.closed.tokens == 4  # the third token comes after it
    assert memory.totals.time_ps == 52
    assert memory.totals.tokens == 8


def test_a_window_may_open_and_close_within_one_step_of_a_leap():
    memory = recorder()
    memory.open(12)
    memory.close(19)
    memory.leap(0, Ramp(10, 2), 4, 0, Regions(), Beside(0), BATCH)
    assert integrals(memory.closed) == {"used": 22 * 7, "reserved": 38 * 7, "free": 40 * 7}
    assert memory.closed is not None
    assert memory.closed.tokens == 0


def test_stays_are_counted_between_the_ends_of_the_window():
    memory = recorder()
    occupancy = memory._occupancy
    for _ in range(3):
        occupancy.arrive(0)
    memory.open(12)
    memory.close(30)
    occupancy.reading(40)
    memory.step(0, 40, 0, USE, Beside(0), BATCH)
    assert memory.closed is not None
    assert memory.closed.stay_ps == 3 * 18
    assert memory.totals.stay_ps == 3 * 28


@pytest.mark.parametrize("steps", [1, 4])
def test_a_warm_up_that_outlasts_the_arrivals_leaves_no_sums_up_to_the_last_one(steps):
    # Whether the step that the last arrival falls into is over when the warm-up ends (one by one), or not (a leap).
    memory = recorder()
    memory.close(15)
    if steps == 1:
        memory.step(0, 20, 0, USE, Beside(0), BATCH)
    memory.open(30)
    memory.leap(memory._end_ps, Ramp(20, 0), steps, 1, Regions(), Beside(0), BATCH)
    memory.finish(200)
    assert memory.closed is None
    assert memory.opened_ps == 30


def test_a_saturated_window_counts_only_steps_that_leave_requests_waiting():
    memory = recorder("saturated")
    queue = BATCH._replace(waiting=1)
    memory.step(0, 10, 0, USE, Beside(0), BATCH)
    memory.close(15)  # the last arrival ends nothing
    memory.step(10, 20, 1, PoolUse(60, 0, 0, 0, 0, 40, 40), Beside(0), queue)
    memory.leap(30, Ramp(10, 2), 2, 2, Regions(), Beside(0), queue)
    memory.leap(52, Ramp(10, 2), 2, 4, Regions(), Beside(0), BATCH)
    memory.finish(200)
    assert memory.closed is None
    assert integrals(memory.totals) == {
        "used": 60 * 20 + 20 * 10 + 22 * 12,
        "reserved": 40 * 10 + 38 * 12,
        "free": 40 * 42,
    }
    assert (memory.totals.time_ps, memory.totals.tokens) == (42, 2 + 4)
    assert memory.totals.max_running == 2


def test_a_step_that_the_horizon_cuts_counts_its_levels_and_no_tokens():
    memory = recorder()
    memory.stop(0, 6, 0, USE, Beside(0), BATCH)
    memory.finish(6)
    assert integrals(memory.totals) == {"used": 240, "reserved": 150, "free": 210}
    assert (memory.totals.tokens, memory.steps) == (0, 0)


def test_each_step_or_leap_is_one_row_with_the_levels_of_its_first_step():
    memory = recorder()
    memory.never_written.will_own(decoding(0), 3, 6)
    memory.step(5, 10, 0, USE, Beside(0), BATCH._replace(prefill_tokens=9))
    memory.leap(15, Ramp(10, 2), 4, 1, Regions(), Beside(3), BATCH)
    width = len(SERIES)
    rows = [dict(zip(SERIES, memory.series[at : at + width], strict=True)) for at in (0, width)]
    assert len(memory.series) == 2 * width
    assert [rows[0][name] for name in ("start_ps", "duration_ps", "steps", "prefill_tokens")] == [5, 10, 1, 9]
    assert [rows[1][name] for name in ("start_ps", "duration_ps", "steps", "prefill_tokens")] == [15, 52, 4, 0]
    assert [rows[1][name] for name in CLASSES] == [20, 40, 0, 0, 0, 0, 3, 37]
    assert all(sum(row[name] for name in CLASSES) == POOL for row in rows)


@given(
    st.tuples(st.integers(1, 30), st.integers(0, 5)),
    st.integers(1, 15),
    st.lists(st.tuples(st.integers(0, 14), st.integers(1, 4)), max_size=4),
    st.one_of(st.none(), st.integers(0, 500)),
    st.one_of(st.none(), st.integers(0, 500)),
    st.sampled_from([0, 2]),
    st.sampled_from(["auto", "saturated"]),
)
def test_a_leap_leaves_the_sums_that_its_steps_leave(times, steps, owners, opens, closes, waiting, window):
    ramp, regions, batch = Ramp(*times), Regions(), BATCH._replace(waiting=waiting)
    leaping, stepping = recorder(window), recorder(window)
    for memory in (leaping, stepping):
        for number, (clock, slots) in enumerate(owners):
            memory.never_written.will_own(decoding(number), clock, slots)
        if opens is not None:
            memory.open(opens)
        if closes is not None:
            memory.close(closes)
    leaping.leap(3, ramp, steps, 0, regions, Beside(1), batch)
    for step in range(steps):
        start, length = 3 + ramp.until(step), ramp.until(step + 1) - ramp.until(step)
        stepping.step(start, length, step, regions.use_at(step), Beside(1), batch)
    for memory in (leaping, stepping):
        memory.finish(600)
    for ours, theirs in ((leaping.totals, stepping.totals), (leaping.closed, stepping.closed)):
        assert (ours is None) == (theirs is None)
        if ours is not None and theirs is not None:
            assert all(getattr(ours, name) == getattr(theirs, name) for name in Totals.__slots__)
    assert leaping.opened_ps == stepping.opened_ps
    assert leaping.steps == stepping.steps


@pytest.mark.parametrize("stepwise", [True, False], ids=["stepping", "leaping"])
def test_requests_that_take_their_last_block_together_do_not_raise_the_peak_of_reserved(stepwise):
    # Prompts of 11, 12, 13 and 14 tokens, one a step, all in the first of their blocks of 16; each will write 17.
    # From the fifth step on all have written the same and take their second block together, of which they will
    # write one slot: 4 reserved and 60 internal, no matter whose last block is looked at first.
    requests = [Request(number, number * 1000, 11 + number, 7 - number) for number in range(4)]
    case = {
        "requests": requests,
        "allocator": "paged",
        "pool_slots": 160,
        "block_size": 16,
        "watermark": 0.0,
        "reserve_full_isl": True,
        "max_num_seqs": 8,
        "max_num_batched_tokens": 64,
        "max_model_len": 64,
        "long_prefill_token_threshold": 0,
        "chunked_prefill": True,
        "horizon_ps": None,
        "step_time": {"base_ps": 1000, "token_ps": 0, "context_ps": 0, "copied_ps": 0},
    }
    found = peaks(run_case(case, stepwise=stepwise).recording.memory.totals)
    # The fourth step: three requests with 13 of 16 slots written, and a fresh block of 16.
    assert found["reserved"] == 3 * 3 + 16
    assert found["internal"] == 4 * 15


@pytest.mark.parametrize(("elapsed", "done"), [(0, 0), (9, 0), (10, 1), (21, 1), (22, 2), (36, 3), (1000, 4)])
def test_a_ramp_knows_how_many_of_its_steps_are_over(elapsed, done):
    ramp = Ramp(10, 2)  # over at 10, 22, 36, 52
    assert [ramp.until(steps) for steps in range(5)] == [0, 10, 22, 36, 52]
    assert ramp.done_by(elapsed, 4) == done


@settings(max_examples=200)
@given(st.integers(1, 10**13), st.integers(0, 10**11), st.integers(0, 1), st.integers(1, 400), st.data())
def test_whatever_its_steps_a_ramp_knows_how_many_are_over(first, rise, bend, limit, data):
    ramp = Ramp(first, rise, bend)
    elapsed = data.draw(st.sampled_from([ramp.until(data.draw(st.integers(0, limit + 3))), first * limit]))
    elapsed += data.draw(st.integers(-1, 1))
    assert ramp.done_by(elapsed, limit) == max(
        steps for steps in range(limit + 1) if ramp.until(steps) <= max(0, elapsed)
    )


@pytest.mark.parametrize("start_ps", [0, 1 << 62])
def test_steps_that_the_tables_cannot_hold_are_a_run_that_failed(start_ps):
    memory = recorder()
    with pytest.raises(
        RunError, match=r"a step lasts 1e\+07 s, beyond the 64-bit clock \(9\.22e\+06 s\); take smaller"
    ):
        memory.step(start_ps, 10**19, 0, USE, Beside(5), BATCH)
    with pytest.raises(RunError, match=r"4 steps last 4e\+07 s, beyond the 64-bit clock"):
        recorder().leap(start_ps, Ramp(10**19, 0), 4, 0, Regions(), Beside(0), BATCH)
