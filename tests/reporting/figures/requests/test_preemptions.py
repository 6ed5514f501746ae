"""Preemptions: a line that ends at their number, and bars of what they cost."""

import pytest

from kvsim.reporting.figures.requests.preemptions import COSTS, POINTS, has_preemptions, preemptions
from tests.fake_results import fake_result
from tests.reporting.figures.small_runs import pressed


def test_a_line_rises_to_the_number_of_preemptions_at_their_times():
    results = pressed()
    over, _ = preemptions(results).axes
    assert [line.get_ydata()[-1] for line in over.lines] == [result.metrics["preemptions"] for result in results]
    times_s = sorted(results[0].tables["preemptions"]["time_s"])
    assert list(over.lines[0].get_xdata())[1:-1] == pytest.approx(times_s)


def test_many_of_them_are_told_in_few_corners():
    result = fake_result()
    result.tables["preemptions"] = {"time_s": [at / 100 for at in range(9000)], "request": [1] * 9000}
    over, _ = preemptions([result]).axes
    assert len(over.lines[0].get_xdata()) == POINTS + 1
    assert over.lines[0].get_ydata()[-1] == 9000


def test_bars_are_the_tokens_of_the_metrics():
    results = pressed()
    _, costs = preemptions(results).axes
    labels = {label: name for name, (label, _) in COSTS.items()}
    scale = 1000 if "thousand" in costs.get_xlabel() else 1
    for container in costs.containers:
        name = labels[container.get_label()]
        assert [scale * bar.get_width() for bar in container] == pytest.approx([r.metrics[name] for r in results])
    assert {labels[container.get_label()] for container in costs.containers} >= {"lost_tokens", "recomputed_tokens"}


def test_where_nobody_was_preempted_there_is_no_figure():
    result = fake_result()
    result.metrics["preemptions"] = 0
    assert not has_preemptions([result])
    with pytest.raises(ValueError, match="preemptions"):
        preemptions([result])
