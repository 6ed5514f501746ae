"""Figures say where their numbers come from, give each class its colour, and come out equal each time."""

import numpy as np
import pytest

from kvsim.reporting.figures.memory.over_time import memory_over_time
from kvsim.reporting.figures.memory.side_by_side import memory_side_by_side
from kvsim.reporting.style import CLASS_COLOURS, PNG_DOTS_PER_INCH, WIDTH_INCHES, save_figure
from kvsim.step import CLASSES
from tests.fake_results import POOL_TOKENS, fake_result


def texts(figure):
    return [text.get_text() for text in figure.texts]


def legend(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def tops(axes):
    return max(area.get_xy()[:, 1].max() for area in axes.patches)


def test_every_class_has_a_colour_of_its_own():
    assert set(CLASS_COLOURS) == set(CLASSES)
    assert len(set(CLASS_COLOURS.values())) == len(CLASSES)


def test_the_stack_reaches_the_pool_and_the_legend_names_what_it_shows():
    figure = memory_over_time(fake_result())
    memory = figure.axes[0]
    assert legend(figure) == ["used", "reserved", "internal", "external", "free"]
    assert [area.get_label() for area in reversed(memory.patches)] == legend(figure)
    assert tops(memory) == pytest.approx(POOL_TOKENS / 1000)


def test_axes_carry_their_units():
    memory, _, running, waiting = memory_over_time(fake_result()).axes[:4]
    assert memory.get_ylabel() == "KV memory\n(thousand tokens)"
    assert (running.get_ylabel(), waiting.get_ylabel()) == ("requests\nrunning", "requests\nwaiting")
    assert waiting.get_xlabel() == "time (s)"


def test_running_and_waiting_have_a_scale_each():
    """Five running must not vanish beside a thousand waiting."""
    result = fake_result()
    result.tables["memory"]["running"] = [5] * 400
    result.tables["memory"]["waiting"] = [1000] * 400
    running, waiting = memory_over_time(result).axes[2:4]
    assert 5 < running.get_ylim()[1] < 6
    assert 1000 < waiting.get_ylim()[1] < 1200


def test_a_long_run_is_drawn_over_minutes_and_says_what_it_averages():
    waiting = memory_over_time(fake_result(rows=6000)).axes[3]
    assert waiting.get_xlabel() == "time (min; each point the mean of 3.7 s)"
    assert waiting.get_xlim()[1] == pytest.approx(5999 * 0.25 / 60)


def window_ends(axes):
    return {line.get_xdata()[0] for line in axes.lines if list(line.get_ydata()) == [0, 1]}


def test_a_line_shows_where_the_measured_window_ends_and_the_head_says_so():
    figure = memory_over_time(fake_result())
    memory, _, running, waiting = figure.axes[:4]
    assert window_ends(memory) == window_ends(running) == window_ends(waiting) == {90.0}
    assert "shares are means over 0 to 90 s (to the last arrival): up to the dashed line" in texts(figure)


def test_a_window_that_is_the_whole_run_needs_no_line():
    result = fake_result()
    result.metrics["window_s"] = [0.0, result.metrics["simulated_s"]]
    figure = memory_over_time(result)
    assert window_ends(figure.axes[0]) == set()
    assert "shares are means over 0 to 99.8 s (the whole run)" in texts(figure)


def test_the_foot_says_version_seed_and_provenance():
    foot = texts(memory_over_time(fake_result()))[-1].replace("\n", " ")
    for part in (
        "kvsim 0.1.0",
        "seed 7",
        "step times: estimated from data sheets",
        "pool: given: 2,588 blocks",
    ):
        assert part in foot


def marks(figure):
    """By row: how many marks there are, and the number beside them."""
    axes = figure.axes[1]
    told = [text.get_text() for text in axes.texts]
    drawn = [int(np.isfinite(line.get_ydata()).sum()) // 2 for line in axes.lines]
    return {name: (count, number) for name, number, count in zip(told[::2], told[1::2], drawn, strict=True)}


def test_preemptions_rejections_and_each_cause_of_a_shortage_have_a_row_of_marks():
    result = fake_result()
    outcomes, causes = result.tables["events"]["outcome"], result.tables["events"]["cause"]
    expected = {
        "preempted": len(result.tables["preemptions"]["time_s"]),
        "rejected": outcomes.count("reject"),
        "aborted": outcomes.count("abort"),
        "no free slots": causes.count("capacity"),
        "no fitting hole": causes.count("fragmentation"),
    }
    assert min(expected.values()) > 0
    assert marks(memory_over_time(result)) == {name: (count, str(count)) for name, count in expected.items()}


def test_marks_that_would_lie_on_one_dot_are_one_and_their_number_is_told():
    result = fake_result()
    result.tables["preemptions"] = {"time_s": [30.0] * 5000 + [60.0]}
    assert marks(memory_over_time(result))["preempted"] == (2, "5,001")


def test_marks_that_never_happened_have_no_row():
    result = fake_result()
    events = result.tables["events"]
    events["outcome"] = ["wait"] * len(events["outcome"])
    events["cause"] = ["queue"] * len(events["outcome"])
    assert list(marks(memory_over_time(result))) == ["preempted"]


def test_a_run_without_events_draws_no_marks():
    result = fake_result()
    result.tables["events"] = {}
    result.tables["preemptions"] = {"time_s": []}
    assert marks(memory_over_time(result)) == {}


def test_all_eight_classes_and_their_legend_fit_the_width():
    result = fake_result()
    table = result.tables["memory"]
    for name in ("dead", "moving", "cached"):
        table[name] = [100] * len(table["time_s"])
    figure = memory_over_time(result)
    assert legend(figure) == list(CLASSES)
    figure.draw_without_rendering()
    for box in [figure.legends[0].get_window_extent(), *(t.get_window_extent() for t in figure.texts)]:
        assert box.x1 <= figure.bbox.x1
        assert box.x0 >= 0


def test_a_run_without_a_pool_has_no_figure():
    result = fake_result("no-cache")
    result.metrics["pool_tokens"] = None
    with pytest.raises(ValueError, match="no pool"):
        memory_over_time(result)


def test_a_comparison_has_a_panel_for_each_on_the_same_axes():
    """Runs of 25 s and 100 s: the shorter one takes a quarter of the width."""
    short, long = fake_result("short", rows=101), fake_result("long", waste=0.5)
    short.metrics |= {"simulated_s": 25.0, "window_s": [0.0, 25.0]}
    figure = memory_side_by_side([short, long])
    first, second = figure.axes
    assert first.get_xlim() == second.get_xlim() == (0, pytest.approx(99.75))
    assert first.get_ylim() == second.get_ylim() == (0, pytest.approx(102))
    for axes in figure.axes:
        assert tops(axes) == pytest.approx(100)
    assert window_ends(first) == set()
    assert window_ends(second) == {90.0}
    titles = [[text.get_text() for text in axes.texts] for axes in figure.axes]
    assert titles[0] == ["short", "5% wasted, 24 running, TTFT p50 0.56 s, 10 preemptions"]
    assert titles[1][0] == "long"


def test_what_differs_between_the_runs_of_a_comparison_is_said_with_their_names():
    one, other = fake_result("one"), fake_result("other")
    other.provenance["pool"] = "from the card"
    told = texts(memory_side_by_side([one, other]))
    foot = next(text for text in told if text.startswith("kvsim ")).replace("\n", " ")
    assert "pool: given: 2,588 blocks (one)" in foot
    assert "pool: from the card (other)" in foot
    assert "runs) · pool" in foot


def test_eight_variants_fit_their_figure():
    figure = memory_side_by_side([fake_result(f"variant-{number}") for number in range(8)])
    figure.draw_without_rendering()
    for text in [*figure.texts, *(text for axes in figure.axes for text in axes.texts)]:
        box = text.get_window_extent()
        assert 0 <= box.x0 <= box.x1 <= figure.bbox.x1
        assert 0 <= box.y0 <= box.y1 <= figure.bbox.y1


@pytest.mark.parametrize("name", ["paged in blocks of sixteen slots as vLLM has it", "W" * 200])
def test_a_long_name_and_what_is_said_of_its_variant_do_not_overlap(name):
    figure = memory_side_by_side([fake_result(name), fake_result("paged")])
    figure.draw_without_rendering()
    for axes in figure.axes:
        title, said = (text.get_window_extent() for text in axes.texts)
        assert not title.overlaps(said)
        assert max(title.x1, said.x1) <= figure.bbox.x1
        assert min(title.y0, said.y0) > axes.bbox.y1
    tops = [max(text.get_window_extent().y1 for text in axes.texts) for axes in figure.axes]
    assert tops[1] < figure.axes[0].bbox.y0


def test_where_a_request_has_several_samples_sequences_run():
    result = fake_result()
    result.scenario_resolved["workload.samples"] = {"value": 4, "source": "line 9"}
    labels = [axes.get_ylabel() for axes in memory_over_time(result).axes]
    assert "sequences\nrunning" in labels
    assert "sequences\nwaiting" in labels


def test_a_comparison_of_nothing_or_without_a_pool_has_no_figure():
    with pytest.raises(ValueError, match="at least one"):
        memory_side_by_side([])
    result = fake_result("no-cache")
    result.metrics["pool_tokens"] = None
    with pytest.raises(ValueError, match="without a pool"):
        memory_side_by_side([fake_result(), result])


def test_an_svg_keeps_its_text_as_text(tmp_path):
    _, svg = save_figure(memory_side_by_side([fake_result("contiguous"), fake_result("paged")]), tmp_path, "figure")
    text = svg.read_text()
    for words in ("contiguous", "paged", "% of the KV pool", "time (s)"):
        assert f">{words}</text>" in text


def test_equal_results_give_equal_bytes(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        save_figure(memory_over_time(fake_result()), tmp_path / folder, "memory")
        save_figure(memory_side_by_side([fake_result(), fake_result("b")]), tmp_path / folder, "side")
    for name in ("memory.png", "memory.svg", "side.png", "side.svg"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_files_hold_no_date_and_the_png_has_the_pixels_of_the_house(tmp_path):
    png, svg = save_figure(memory_over_time(fake_result()), tmp_path, "memory")
    text = svg.read_text()
    assert "<dc:date>" not in text
    assert "Matplotlib" not in text
    width = int.from_bytes(png.read_bytes()[16:20], "big")
    assert width == WIDTH_INCHES * PNG_DOTS_PER_INCH


def test_drawing_leaves_the_settings_of_the_caller_alone(tmp_path):
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    save_figure(memory_over_time(fake_result()), tmp_path, "memory")
    assert dict(mpl.rcParams) == before
