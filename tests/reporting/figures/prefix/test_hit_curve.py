"""The figure of a hit curve: what it shows, and equal bytes for equal input."""

import pytest

from kvsim.memory.eviction import POLICIES
from kvsim.reporting.figures.prefix.hit_curve import COLOURS, draw_hit_curve
from kvsim.reporting.style import save_figure
from kvsim.study.hits.curve import hit_curve
from kvsim.workload.trace.prefixes import read_prefixes


def drawn(policies=("lru", "optimal"), sizes=(64, 8192)):
    curve = hit_curve(read_prefixes("mooncake-conversation"), policies=policies, sizes_blocks=sizes)
    return draw_hit_curve(curve)


def test_every_policy_has_a_colour_of_its_own():
    assert list(COLOURS) == list(POLICIES)
    assert len(set(COLOURS.values())) == len(POLICIES)


def test_it_names_the_ideal_the_knee_and_the_trace():
    figure = drawn()
    (axes,) = figure.axes
    texts = " ".join(text.get_text() for text in [*axes.texts, *figure.texts])
    assert "ideal 13.5 %" in texts
    assert "7,496 blocks: LRU finds" in texts
    assert "400 prompts of mooncake-conversation" in texts
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["lru", "optimal"]


def test_lru_is_drawn_at_every_size_and_is_where_its_points_are():
    (axes,) = drawn(["lru", "fifo"]).axes
    line, points = axes.lines[:2]
    assert len(line.get_xdata()) > 100
    assert line.get_ydata()[0] <= points.get_ydata()[-1] <= line.get_ydata()[-1]


@pytest.mark.parametrize(("sizes", "style"), [([64, 128, 256], "-"), ([64, 128, 512], "None"), ([64], "None")])
def test_only_close_sizes_are_joined(sizes, style):
    """Between sizes far apart a straight line would show rates that nobody measured."""
    lines = {line.get_label(): line for line in drawn(["lru", "fifo"], sizes).axes[0].lines}
    assert lines["fifo"].get_linestyle() == style
    assert lines["fifo"].get_marker() != "None"
    assert lines["lru"].get_linestyle() == "-"


def test_equal_curves_are_equal_bytes(tmp_path):
    for name in ("one", "two"):
        save_figure(drawn(), tmp_path, name)
    for form in ("png", "svg"):
        assert (tmp_path / f"one.{form}").read_bytes() == (tmp_path / f"two.{form}").read_bytes()
