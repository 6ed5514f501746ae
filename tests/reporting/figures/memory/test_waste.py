"""The bars of the waste figure are the shares of the metrics, and stand beside what is published."""

import pytest

from kvsim.reporting.figures.memory.waste import PARTS, has_waste, waste
from tests.fake_results import fake_result
from tests.reporting.figures.small_runs import published


def bars(figure):
    """Height, class and length of every bar."""
    [axes] = figure.axes
    return [
        (round(bar.get_y() + bar.get_height() / 2, 2), container.get_label(), bar.get_width())
        for container in axes.containers
        for bar in container
    ]


def test_a_bar_is_a_class_of_the_pool_and_all_of_them_are_the_pool():
    results = published()
    figure = waste(results)
    drawn = bars(figure)
    heights = sorted({height for height, _, _ in drawn})
    simulated = heights[:3]
    for result, height in zip(results, simulated, strict=True):
        own = {name: length for at, name, length in drawn if at == height}
        share = result.metrics["mean_share"]
        assert own == pytest.approx({name: 100 * share[name] for name in own})
        assert sum(own.values()) == pytest.approx(100)


def test_a_published_bar_shows_what_is_printed_and_hatches_the_rest():
    drawn = bars(waste(published()))
    last = max(height for height, _, _ in drawn)
    assert [(name, length) for at, name, length in drawn if at == last and name in PARTS] == [
        ("used", pytest.approx(90)),
        ("reserved", pytest.approx(5)),
    ]
    assert sum(length for at, _, length in drawn if at == last) == pytest.approx(100)


def test_the_heading_says_the_least_and_the_most_and_what_is_printed_of_them():
    results = published()
    text = " ".join(text.get_text() for text in waste(results).texts)
    used = sorted(results, key=lambda result: result.metrics["mean_share"]["used"])
    for result in (used[0], used[-1]):
        assert f"{result.metrics['mean_share']['used']:.1%}" in text
        assert result.name in text
    assert ("90.0%" in text) == (results[-1] in (used[0], used[-1]))


def test_one_pool_alone_is_no_comparison_unless_something_is_published():
    result = fake_result()
    assert not has_waste([result])
    with pytest.raises(ValueError, match="two with pools"):
        waste([result])
    result.published = {"mean_share": {"used": 0.5}}
    assert has_waste([result])
    result.published = {"mean_running": 7.0}
    assert not has_waste([result])
