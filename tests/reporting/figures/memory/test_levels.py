"""Columns over time have the means that the table has, whatever the number of points."""

import numpy as np
import pytest

from kvsim.metrics.tables import FileTables
from kvsim.reporting.figures.memory.levels import levels
from tests.fake_results import fake_result
from tests.reporting.figures.small_runs import pressed


def result_of(time_s, simulated_s, **columns):
    result = fake_result()
    result.tables["memory"] = {"time_s": time_s, **columns}
    result.metrics["simulated_s"] = simulated_s
    return result


def test_few_rows_are_steps():
    found = levels(result_of([0.0, 2.0], 5.0, running=[3, 1]), ("running",))
    assert found.time_s.tolist() == [0, 2, 2, 5]
    assert found.columns["running"].tolist() == [3, 3, 1, 1]
    assert found.mean_over_s is None


def test_many_rows_are_means_over_slices_that_keep_the_area():
    result = pressed()[0]
    table = result.tables["memory"]
    found = levels(result, ("running", "free"), points=37)
    end_s = result.metrics["simulated_s"]
    lasting_s = np.diff([*table["time_s"], end_s])
    for name in ("running", "free"):
        area = float(np.dot(lasting_s, table[name]))
        assert found.columns[name].sum() * found.mean_over_s == pytest.approx(area)


def test_a_mean_is_over_the_time_in_which_there_is_a_number():
    result = result_of([0.0, 1.0, 2.0, 3.0], 4.0, unusable=[None, 0.5, None, None])
    found = levels(result, ("unusable",), points=2)
    assert found.columns["unusable"][0] == pytest.approx(0.5)
    assert np.isnan(found.columns["unusable"][1])


def test_a_table_in_a_file_is_traced_alike(tmp_path):
    result = pressed()[0]
    expected = levels(result, ("largest_hole", "fragmentation"), points=50)
    result.save(tmp_path)
    kept, result.tables = result.tables, FileTables({"memory": tmp_path / "memory.parquet"})
    try:
        found = levels(result, ("largest_hole", "fragmentation"), points=50)
    finally:
        result.tables = kept
    for name, values in expected.columns.items():
        assert found.columns[name] == pytest.approx(values, nan_ok=True)


def test_a_run_in_which_no_time_passed_has_none():
    with pytest.raises(ValueError, match="no memory over time"):
        levels(result_of([0.0], 0.0, running=[0]), ("running",))
