"""Requests running and waiting: a line a result, with the areas of the table."""

from dataclasses import replace

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


def test_counts_are_whole_also_where_nobody_waits():
    results = [replace(result, tables={**result.tables, "memory": calm(result)}) for result in pressed()]
    running, waiting = counts(results).axes
    assert waiting.get_ylim()[1] == 1
    for axes in (running, waiting):
        assert all(tick == round(tick) for tick in axes.get_yticks())


def calm(result):
    table = result.tables["memory"]
    return {**table, "waiting": [0] * len(table["time_s"])}


def test_samples_are_counted_as_sequences():
    result = pressed()[0]
    several = {**result.scenario_resolved, "workload.samples": {"value": 2, "source": "line 1"}}
    figure = counts([result, replace(result, scenario_resolved=several)])
    assert [axes.get_ylabel() for axes in figure.axes] == ["sequences running", "sequences waiting"]


def test_nothing_has_no_figure():
    with pytest.raises(ValueError, match="at least one"):
        counts([])
