"""A timeline: what each request does when, without gaps, as the tables say."""

from dataclasses import replace

import pytest

from kvsim.reporting.figures.requests.timeline import ROWS, lives_of, timeline
from tests.fake_results import fake_result
from tests.reporting.figures.small_runs import pressed


def test_a_life_goes_from_arrival_to_end_without_gaps():
    result = pressed()[0]
    table = result.tables["requests"]
    lives = lives_of(result, rows=1000)
    assert len(lives) == result.metrics["arrived"]
    for life in lives:
        spans = life.spans
        for (_, _, stop), (_, start, _) in zip(spans, spans[1:], strict=False):
            assert stop == start
        if spans:
            assert (spans[0][1], spans[-1][2]) == (table["arrival_s"][life.number], table["end_s"][life.number])


def test_waiting_and_prefill_last_as_long_as_the_table_says():
    result = pressed()[0]
    table = result.tables["requests"]
    calm = 0
    for life in lives_of(result, rows=1000):
        if table["end"][life.number] == "finished" and not table["preemptions"][life.number]:
            spent = {state: stop - start for state, start, stop in life.spans}
            assert spent.get("waiting", 0.0) == pytest.approx(table["queue_s"][life.number], abs=1e-9)
            assert spent["prefill"] == pytest.approx(table["prefill_s"][life.number])
            calm += 1
    assert calm


def test_a_request_is_away_from_each_preemption_to_its_return():
    result = pressed()[0]
    lost = result.tables["preemptions"]
    assert len(lost["time_s"])
    lives = {life.number: life for life in lives_of(result, rows=1000)}
    for number, gone_s, again_s in zip(lost["request"], lost["time_s"], lost["resumed_s"], strict=True):
        own = [(start, stop) for state, start, stop in lives[number].spans if state == "preempted"]
        assert (gone_s, again_s) in own or gone_s == again_s


def test_a_figure_shows_some_requests_in_a_row_those_that_suffer_most():
    result = fake_result(count=300)
    result.tables["requests"]["preemptions"] = [5 * (100 <= number < 120) for number in range(300)]
    lives = lives_of(result)
    assert len(lives) == ROWS
    assert {life.number for life in lives} >= set(range(100, 120))
    assert [life.number for life in lives] == list(range(lives[0].number, lives[0].number + ROWS))


def test_bars_of_a_state_are_the_spans_of_the_lives():
    result = pressed()[0]
    lives = lives_of(result)
    [axes] = timeline(result).axes
    for container in axes.containers:
        expected = [
            (life.number, start, stop - start)
            for life in lives for state, start, stop in life.spans if state == container.get_label()
        ]  # fmt: skip
        drawn = [(bar.get_y() + bar.get_height() / 2, bar.get_x(), bar.get_width()) for bar in container]
        assert [one for bar in drawn for one in bar] == pytest.approx([one for span in expected for one in span])


@pytest.mark.parametrize("count", [1, 2, 9])
def test_few_requests_are_numbered_in_whole_and_what_the_axis_is_fits_beside_it(count):
    result = fake_result(count=count)
    figure = timeline(result)
    figure.draw_without_rendering()
    [axes] = figure.axes
    shown = [tick for tick in axes.get_yticks() if -0.5 <= tick <= count - 0.5]
    assert shown == [round(tick) for tick in shown] != []
    label = axes.yaxis.label.get_window_extent()
    assert all(not label.overlaps(text.get_window_extent()) for text in figure.legends[0].texts)
    assert label.y1 <= axes.bbox.y1 + 3


def test_requests_of_sessions_stand_in_the_order_of_arrival_each_in_a_row_with_its_number():
    """Their numbers leave gaps, and a turn that follows an answer may come before one of a lower number."""
    result = fake_result(count=60)
    table = result.tables["requests"]
    table["id"] = [7 * number for number in range(60)]
    arrivals = list(table["arrival_s"])
    arrivals[10], arrivals[11] = arrivals[11], arrivals[10]
    table["arrival_s"] = arrivals
    lives = lives_of(result)
    arrived = dict(zip(table["id"], arrivals, strict=True))
    times = [arrived[life.number] for life in lives]
    assert times == sorted(times)
    assert {life.number for life in lives} >= {70, 77}
    figure = timeline(result)
    [axes] = figure.axes
    low, high = sorted(axes.get_ylim())
    assert high - low == pytest.approx(len(lives) + 0.2)
    figure.draw_without_rendering()
    named = {round(y): text.get_text() for y, text in zip(axes.get_yticks(), axes.get_yticklabels(), strict=True)}
    rows = range(lives[0].number, lives[0].number + len(lives))
    assert {
        row: str(life.number) for row, life in zip(rows, lives, strict=True) if row in named
    }.items() <= named.items()
    assert "40 of 60 requests" in figure.texts[0].get_text()


def test_a_request_that_was_turned_away_at_once_is_a_mark_in_time(recwarn):
    result = fake_result(count=1)
    nothing = {"end": ["rejected"], "end_s": [5.0], "arrival_s": [5.0], "first_scheduled_s": [None]}
    result.tables["requests"] |= {**nothing, "first_token_s": [None], "preemptions": [0]}
    [axes] = timeline(result).axes
    assert axes.get_xlim() == pytest.approx((5.0, 5.001))
    assert [line.get_label() for line in axes.lines] == ["rejected"]
    assert not recwarn.list


def test_ends_that_are_no_finish_are_marked():
    result = fake_result(count=60)
    result.tables["requests"]["preemptions"][59] = 9
    [axes] = timeline(result).axes
    [line] = [line for line in axes.lines if line.get_label() == "rejected"]
    rejected = [number for number, end in enumerate(result.tables["requests"]["end"]) if end == "rejected"]
    assert set(line.get_ydata()) <= set(rejected)
    assert len(line.get_ydata())


def test_a_run_that_did_not_record_returns_shows_only_when_memory_was_lost():
    """As run folders of earlier versions."""
    kept = pressed()[0]
    lost = {name: values for name, values in kept.tables["preemptions"].items() if name != "resumed_s"}
    result = replace(kept, tables={**kept.tables, "preemptions": lost})
    states = {state for life in lives_of(result, rows=1000) for state, _, _ in life.spans}
    assert "preempted" in states
    assert "running again" not in states


def test_a_run_without_requests_has_no_timeline():
    result = fake_result()
    result.tables["requests"] = {name: [] for name in result.tables["requests"]}
    with pytest.raises(ValueError, match="no request"):
        timeline(result)
