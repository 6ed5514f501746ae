"""Strips show at each moment what the table of addresses says lies where."""

import numpy as np
import pytest

from kvsim.reporting.figures.memory.address_map import Painted, colours
from kvsim.reporting.figures.memory.strips import MOMENTS, strips
from kvsim.step import CLASSES
from tests.fake_results import fake_result
from tests.reporting.figures.small_runs import pressed


def truth(result, time_s):
    """The class of every slot at a moment, row by row."""
    changes = result.tables["addresses"]
    pool = np.full(result.metrics["pool_tokens"], CLASSES.index("free"))
    rows = zip(*(changes[name] for name in ("time_s", "start", "length", "class")), strict=True)
    for at, start, length, name in rows:
        if at <= time_s:
            pool[start : start + length] = CLASSES.index(name)
    return pool


def test_painting_slot_by_slot_gives_what_the_changes_say():
    result = pressed()[0]
    painted = Painted(result.tables["addresses"], result.metrics["pool_tokens"], 1)
    for time_s in (1.0, 3.0, 6.0):
        assert (painted.at(time_s) // 3 == truth(result, time_s)).all()


def test_a_column_a_variant_and_a_strip_a_moment_the_same_for_all():
    results = pressed()
    figure = strips(results)
    assert len(figure.axes) == MOMENTS * len(results)
    labels = [axes.get_ylabel() for axes in figure.axes[:MOMENTS]]
    until_s = min(result.metrics["window_s"][1] for result in results)
    assert [float(label.split()[0]) for label in labels] == pytest.approx(
        [until_s * part / (MOMENTS + 1) for part in range(1, MOMENTS + 1)], rel=0.01
    )
    names = [text.get_text() for text in figure.texts]
    assert {"contiguous", "reserve", "paged"} <= set(names)


def test_a_strip_has_the_colours_of_what_most_slots_of_a_point_hold():
    result = pressed()[1]
    figure = strips([result])
    [image] = figure.axes[2].images
    pool, shown = result.metrics["pool_tokens"], image.get_array()[0]
    width = -(-pool // len(shown))
    time_s = result.metrics["window_s"][1] * 3 / (MOMENTS + 1)
    painted = Painted(result.tables["addresses"], pool, width).at(time_s)
    assert np.allclose(shown, colours()[painted])
    classes = truth(result, time_s)
    same = [(classes[at * width : (at + 1) * width] == code // 3).mean() for at, code in enumerate(painted)]
    assert np.mean(same) > 0.9


def test_nothing_is_drawn_where_nobody_recorded_addresses():
    with pytest.raises(ValueError, match="addresses"):
        strips([fake_result()])
