"""What a paper prints stands beside what was simulated, each as long as it is."""

import pytest

from kvsim.reporting.figures.requests.published import published
from tests.fake_results import fake_result


def test_a_bar_is_the_metric_and_the_one_below_it_the_printed_number():
    one, other = fake_result("one"), fake_result("other")
    one.published = {"mean_running": 20.0, "mean_share": {"used": 0.5}}
    figure = published([one, other])
    [axes] = figure.axes
    assert [bar.get_width() for container in axes.containers for bar in container] == [24.25, 20.0]
    assert axes.get_xlabel() == "requests at once, mean"
    assert any("+21.2% at most (one)" in text.get_text() for text in figure.texts)


def test_where_nothing_is_printed_there_is_no_figure():
    with pytest.raises(ValueError, match="published"):
        published([fake_result()])
