"""The curve that a figure draws has the areas that the run recorded."""

import numpy as np
import pytest

from kvsim.metrics.tables import FileTables, files, slices
from kvsim.reporting.figures.memory.curve import memory_curve
from kvsim.step import CLASSES
from tests.fake_results import POOL_TOKENS, fake_result

POOL = 100


def memory(**columns):
    length = len(columns["time_s"])
    table = {name: [0] * length for name in (*CLASSES, "running", "waiting")} | columns
    table["free"] = [POOL - sum(table[name][row] for name in CLASSES if name != "free") for row in range(length)]
    return table


def result_of(memory_table, steps=None, simulated_s=None):
    result = fake_result()
    result.tables["memory"] = memory_table
    result.tables["steps"] = steps or {}
    result.metrics["simulated_s"] = simulated_s
    return result


def one_leap(start_s, duration_s, steps, decode_tokens):
    zero = [0]
    return {
        "start_s": [start_s],
        "duration_s": [duration_s],
        "steps": [steps],
        "prefill_tokens": zero,
        "decode_tokens": [decode_tokens],
        "context_tokens": zero,
        "running": zero,
        "waiting": zero,
    }


def test_the_classes_add_up_to_the_pool_at_every_corner():
    for rows in (100, 5000):
        curve = memory_curve(fake_result(rows=rows))
        assert sum(curve.slots.values()) == pytest.approx(POOL_TOKENS)


def test_a_level_holds_until_the_next_row():
    curve = memory_curve(result_of(memory(time_s=[0.0, 2.0], used=[40, 10]), simulated_s=5.0))
    assert curve.time_s.tolist() == [0.0, 2.0, 2.0, 5.0]
    assert curve.slots["used"].tolist() == [40, 40, 10, 10]
    assert curve.mean_over_s is None


def test_a_leap_fills_reserved_slots_and_then_free_ones():
    levels = memory(time_s=[0.0, 10.0], used=[20, 0], reserved=[30, 0])
    curve = memory_curve(result_of(levels, one_leap(0.0, 10.0, 41, 41)))
    assert curve.slots["used"].tolist() == pytest.approx([20, 60])
    assert curve.slots["reserved"].tolist() == pytest.approx([30, 0])
    assert curve.slots["free"].tolist() == pytest.approx([50, 40])


def test_a_single_step_writes_nothing_before_its_end():
    levels = memory(time_s=[0.0, 10.0], used=[20, 0], reserved=[30, 0])
    curve = memory_curve(result_of(levels, one_leap(0.0, 10.0, 1, 5)))
    assert curve.slots["used"].tolist() == [20, 20]


def test_a_step_that_the_horizon_cuts_writes_nothing():
    levels = memory(time_s=[0.0, 10.0], used=[20, 0], reserved=[30, 0])
    curve = memory_curve(result_of(levels, one_leap(0.0, 10.0, 0, 0)))
    assert curve.slots["used"].tolist() == [20, 20]


@pytest.mark.parametrize("points", [5, 10**6])
def test_a_table_that_is_read_in_slices_has_the_curve_of_the_whole(tmp_path, monkeypatch, points):
    result = fake_result(rows=200)
    whole = memory_curve(result, points=points)
    monkeypatch.setattr(files, "PIECE_ROWS", 7)
    result.save(tmp_path)
    stored = FileTables({name: tmp_path / f"{name}.parquet" for name in ("memory", "steps")})
    assert sum(1 for _ in slices(stored["memory"], ["used"])) == -(-len(result.tables["memory"]["time_s"]) // 7)
    result.tables = stored
    sliced = memory_curve(result, points=points)
    for name in CLASSES:
        assert sliced.slots[name].tolist() == whole.slots[name].tolist()
    assert sliced.time_s.tolist() == whole.time_s.tolist()


def test_a_leap_seen_in_two_rows_grows_by_the_share_of_each():
    levels = memory(time_s=[0.0, 4.0], used=[20, 28], reserved=[70, 62])
    curve = memory_curve(result_of(levels, one_leap(0.0, 10.0, 21, 21)))
    assert curve.slots["used"].tolist() == pytest.approx([20, 28, 28, 40])


def test_averaging_keeps_the_area_of_every_class():
    result = fake_result(rows=5000)
    exact, coarse = memory_curve(result, points=10**6), memory_curve(result, points=50)
    assert exact.mean_over_s is None
    assert coarse.mean_over_s == pytest.approx((exact.time_s[-1] - exact.time_s[0]) / 50)
    for name in CLASSES:
        line = exact.slots[name]
        area = ((line[:-1] + line[1:]) / 2 * np.diff(exact.time_s)).sum()
        assert coarse.slots[name].sum() * coarse.mean_over_s == pytest.approx(area, rel=1e-9)


def test_averaging_weighs_by_time_and_not_by_rows():
    times = [0.0, *np.linspace(9.0, 10.0, 100).tolist()]
    curve = memory_curve(result_of(memory(time_s=times, used=[10] + [90] * 100), simulated_s=10.0), points=2)
    assert curve.slots["used"].tolist() == pytest.approx([10, (10 * 4 + 90) / 5])


def test_a_run_in_which_no_time_passes_has_no_curve():
    with pytest.raises(ValueError, match="no memory over time"):
        memory_curve(result_of(memory(time_s=[])))
    with pytest.raises(ValueError, match="no memory over time"):
        memory_curve(result_of(memory(time_s=[0.0], used=[1]), simulated_s=0.0))
