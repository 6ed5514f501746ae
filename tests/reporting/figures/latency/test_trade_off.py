"""The figure of pools of different sizes: a point for each run, and nothing where there is nothing to weigh."""

from itertools import pairwise

import pytest

from kvsim.reporting.figures.latency.trade_off import has_trade_off, trade_off
from kvsim.reporting.run_folder import write_comparison
from tests.fake_results import fake_result


def sized(name, tokens, tpot_s):
    result = fake_result(name)
    result.metrics["pool_tokens"] = tokens
    result.metrics["tpot_s"] = result.metrics["tpot_s"] | {"p50": tpot_s}
    return result


def test_each_run_is_a_point_at_its_pool_and_its_median():
    figure = trade_off([sized("small", 40_000, 0.05), sized("large", 80_000, 0.1)])
    p50 = next(line for line in figure.axes[0].lines if line.get_label() == "p50")
    assert list(p50.get_xdata()) == [40, 80]
    assert list(p50.get_ydata()) == pytest.approx([50, 100])
    assert [text.get_text() for text in figure.axes[0].texts] == ["small", "large"]


def test_its_foot_states_the_expected_error():
    figure = trade_off([sized("small", 40_000, 0.05), sized("large", 80_000, 0.1)])
    assert "expected error: TPOT 8 % median" in figure.texts[-1].get_text().replace("\n", " ")


def test_equal_pools_have_no_trade_off(tmp_path):
    alike = [fake_result("one"), fake_result("other")]
    assert not has_trade_off(alike)
    with pytest.raises(ValueError, match="different sizes"):
        trade_off(alike)
    names = {path.name for path in write_comparison("alike", alike, tmp_path)}
    assert "trade_off.png" not in names


def test_pools_that_differ_by_rounding_have_no_trade_off():
    assert not has_trade_off([sized("blocks", 41_408, 0.05), sized("pages", 41_366, 0.1)])
    assert has_trade_off([sized("blocks", 42_000, 0.05), sized("more", 44_100, 0.1)])


@pytest.mark.parametrize("large", [42_500, 80_000, 1_234_567])
def test_no_two_labels_of_an_axis_overlap(large):
    figure = trade_off([sized("small", 40_000, 0.05), sized("large", large, 0.1)])
    figure.canvas.draw()
    for axes in figure.axes:
        low, high = axes.get_xlim()
        boxes = [
            label.get_window_extent()
            for at, label in zip(axes.get_xticks(), axes.get_xticklabels(), strict=True)
            if low <= at <= high
        ]
        assert len(boxes) > 1
        assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


def test_a_comparison_of_pools_that_differ_writes_it(tmp_path):
    differ = [sized("small", 41_408, 0.05), sized("large", 82_816, 0.1)]
    names = {path.name for path in write_comparison("differ", differ, tmp_path)}
    assert {"trade_off.png", "trade_off.svg"} <= names
    assert "trade_off.png" in (tmp_path / "README.md").read_text()


@pytest.mark.parametrize("tpot_s", [0.03, 0.05, 0.1, 2.0])
def test_every_axis_of_latencies_has_two_ticks_and_more(tpot_s):
    figure = trade_off([sized("small", 40_000, 0.05), sized("large", 80_000, tpot_s)])
    for axes in figure.axes:
        low, high = axes.get_ylim()
        assert sum(low <= at <= high for at in axes.get_yticks()) > 1
