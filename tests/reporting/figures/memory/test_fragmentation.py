"""Holes over time: the ratio and the largest hole of the table, and a heading with the metric."""

import numpy as np
import pytest

from kvsim.reporting.figures.memory.fragmentation import fragmentation, has_holes
from kvsim.reporting.figures.memory.levels import levels
from tests.reporting.figures.small_runs import pressed


def test_lines_are_the_columns_of_the_table():
    result = pressed()[0]
    ratio, hole = fragmentation([result]).axes
    traced = levels(result, ("fragmentation", "largest_hole"))
    assert ratio.lines[0].get_ydata() == pytest.approx(100 * traced.columns["fragmentation"], nan_ok=True)
    assert np.nanmax(ratio.lines[0].get_ydata()) > 10
    assert hole.lines[0].get_ydata() == pytest.approx(traced.columns["largest_hole"], nan_ok=True)


def test_the_heading_says_the_mean_ratio():
    result = pressed()[0]
    text = " ".join(text.get_text() for text in fragmentation([result]).texts)
    assert f"{result.metrics['fragmentation']:.0%} of the free slots lie outside the largest hole" in text


def test_only_those_with_holes_have_a_line():
    results = pressed()
    assert [result.name for result in results if has_holes(result)] == ["contiguous", "reserve"]
    ratio, _ = fragmentation(results).axes
    assert [line.get_label() for line in ratio.lines] == ["contiguous", "reserve"]
    with pytest.raises(ValueError, match="holes"):
        fragmentation(results[2:])
