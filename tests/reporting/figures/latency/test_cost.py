"""Costs against latency: a point for each that has a price, and a line through those that no other beats."""

from random import Random

import pytest

from kvsim.reporting.figures.latency.cost import costs, has_costs
from tests.fake_results import fake_result, spread
from tests.reporting.figures.small_runs import pressed


def priced(name, usd, ttft_s):
    result = fake_result(name)
    result.metrics["cost"] = {"usd_per_million_output_tokens": usd}
    result.metrics["ttft_s"] = spread(ttft_s)
    return result


def dots(axes):
    return [line for line in axes.lines if line.get_marker() == "o"]


def test_a_point_is_what_the_metrics_say():
    results = pressed()
    for axes, (name, scale) in zip(costs(results).axes, (("ttft_s", 1), ("tpot_s", 1000)), strict=True):
        for dot, result in zip(dots(axes), results, strict=True):
            assert dot.get_xdata()[0] == result.metrics["cost"]["usd_per_million_output_tokens"]
            assert dot.get_ydata()[0] == pytest.approx(scale * result.metrics[name]["p99"])


def test_those_that_no_other_beats_are_filled_and_joined():
    results = [priced("cheap", 1, 3.0), priced("beaten", 2, 4.0), priced("quick", 3, 1.0)]
    axes = costs(results).axes[0]
    assert [dot.get_markerfacecolor() == "white" for dot in dots(axes)] == [False, True, False]
    assert list(axes.lines[0].get_xdata()) == [1, 3]


def test_names_stay_apart_and_inside():
    draw = Random(3)
    results = [priced(f"variant-{n}", 1 + draw.random(), 1 + draw.random()) for n in range(6)]
    figure = costs(results)
    figure.draw_without_rendering()
    for axes in figure.axes:
        boxes = [text.get_window_extent() for text in axes.texts]
        assert len(boxes) == 6
        overlapping = [one for at, one in enumerate(boxes) for other in boxes[at + 1 :] if one.overlaps(other)]
        assert overlapping == []
        assert all(box.x0 >= 0 and box.x1 <= figure.bbox.x1 for box in boxes)


def test_without_prices_or_with_one_price_there_is_nothing_to_weigh():
    assert not has_costs([fake_result("one"), fake_result("other")])
    assert not has_costs([priced("one", 1, 1.0), priced("other", 1, 2.0)])
    with pytest.raises(ValueError, match="different costs"):
        costs([priced("one", 1, 1.0)])
