"""Names of variants in figures: whatever they are, they stay in their place."""

import warnings
from dataclasses import replace

import pytest

from kvsim.reporting.figures.frame import in_line
from kvsim.reporting.figures.latency.first_token import first_token
from kvsim.reporting.figures.memory.over_time import memory_over_time
from kvsim.reporting.figures.memory.strips import strips
from kvsim.reporting.figures.memory.waste import waste
from kvsim.reporting.figures.requests.preemptions import preemptions
from kvsim.reporting.figures.requests.published import published
from kvsim.reporting.style import figure_bytes
from tests.reporting.figures import small_runs

WIDE = ("META-LLAMA-3.1-8B-INSTRUCT", "RESERVE WHAT THE MODEL MAY WRITE", "QWEN2.5-CODER-72B-INSTRUCT")


def named(*names):
    return [replace(result, name=name) for result, name in zip(small_runs.published(), names, strict=True)]


@pytest.mark.parametrize("draw", [waste, first_token, preemptions, published])
def test_names_of_wide_letters_beside_an_axis_are_not_cut_off(draw):
    figure = draw(named(*WIDE))
    figure.draw_without_rendering()
    labels = [label for axes in figure.axes for label in axes.get_yticklabels() if label.get_text()]
    assert any("…" in label.get_text() for label in labels)
    assert min(label.get_window_extent().x0 for label in labels) >= 0


def test_names_above_strips_stay_above_their_own():
    figure = strips(named(*WIDE))
    figure.draw_without_rendering()
    above = [text.get_window_extent() for text in figure.texts if text.get_text().endswith("…")]
    assert len(above) == 3
    assert all(one.x1 < other.x0 for one, other in zip(above, above[1:], strict=False))
    assert above[-1].x1 <= figure.bbox.x1


def test_numbers_below_strips_side_by_side_do_not_touch():
    figure = strips(small_runs.pressed())
    figure.draw_without_rendering()
    shown = [
        label.get_window_extent()
        for axes in figure.axes
        for label in axes.get_xticklabels()
        if label.get_visible() and label.get_text() and axes.get_xlabel()
    ]
    assert len(shown) > 6
    assert not any(one.overlaps(other) for place, one in enumerate(shown) for other in shown[:place])


def test_a_name_without_end_and_one_of_several_lines_are_one_line_above_a_run():
    for name in ("W" * 500, "two\nlines"):
        figure = memory_over_time(named(name, "b", "c")[0])
        figure.draw_without_rendering()
        title, finding = (text.get_window_extent() for text in figure.texts[:2])
        assert title.x1 <= figure.bbox.x1
        assert title.y0 > finding.y1


def test_marks_that_turn_text_around_end_with_the_name():
    assert in_line("safe\u202etxet\u2029x \u2067 y") == "safetxet x y"


def test_letters_that_the_font_lacks_are_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure_bytes(waste(named("分页 🙂", "b", "c")), "png")
