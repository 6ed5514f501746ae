"""Requests running and waiting: a line a result, with the areas of the table."""

import numpy as np
import pytest

from kvsim.reporting.figures.requests.counts import counts
from tests.reporting.figures.small_runs import pressed


def test_lines_have_the_areas_of_the_tables():
    results = pressed()
    figure = counts(results)
    for axes, name in zip(figure.axes, ("running", "waiting"), strict=True):
        for line, result in zip(axes.lines, results, strict=True):
            table, end_s = result.tables["memory"], result.metrics["simulated_s"]
            area = float(np.dot(np.diff([*table["time_s"], end_s]), table[name]))
            time, level = line.get_xdata(), line.get_ydata()
            bins_s = end_s / len(time)
            stepped = time[0] == 0.0
            found = np.trapezoid(level, time) if stepped else level.sum() * bins_s
            assert found == pytest.approx(area)


def test_the_heading_says_who_runs_most_and_least():
    results = pressed()
    text = " ".join(text.get_text() for text in counts(results).texts)
    ranked = sorted(results, key=lambda result: result.metrics["mean_running"])
    for result in (ranked[0], ranked[-1]):
        assert f"{result.name} runs {result.metrics['mean_running']:,.1f}" in text


def test_nothing_has_no_figure():
    with pytest.raises(ValueError, match="at least one"):
        counts([])
