"""Figures say where their numbers come from, give each class its colour, and come out equal each time."""

import pytest

from kvsim.reporting.memory_over_time import memory_over_time
from kvsim.reporting.style import CLASS_COLOURS, PNG_DOTS_PER_INCH, WIDTH_INCHES, save_figure
from kvsim.step import CLASSES
from tests.fake_results import POOL_TOKENS, fake_result


def texts(figure):
    return [text.get_text() for text in figure.texts]


def legend(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_every_class_has_a_colour_of_its_own():
    assert set(CLASS_COLOURS) == set(CLASSES)
    assert len(set(CLASS_COLOURS.values())) == len(CLASSES)


def test_the_stack_reaches_the_pool_and_the_legend_names_what_it_shows():
    figure = memory_over_time(fake_result())
    memory = figure.axes[0]
    assert legend(figure) == ["used", "reserved", "internal", "external", "free"]
    assert len(memory.collections) == 5
    top = max(path.vertices[:, 1].max() for area in memory.collections for path in area.get_paths())
    assert top == pytest.approx(POOL_TOKENS / 1000)


def test_axes_carry_their_units():
    memory, _, counts = memory_over_time(fake_result()).axes[:3]
    assert memory.get_ylabel() == "KV memory (thousand tokens)"
    assert counts.get_ylabel() == "requests"
    assert counts.get_xlabel() == "time (s)"


def test_a_long_run_is_drawn_over_minutes_and_says_what_it_averages():
    counts = memory_over_time(fake_result(rows=6000)).axes[2]
    assert counts.get_xlabel() == "time (min; each point the mean of 2.5 s)"
    assert counts.get_xlim()[1] == pytest.approx(5999 * 0.25 / 60)


def test_the_foot_says_version_seed_and_provenance():
    foot = texts(memory_over_time(fake_result()))[-1].replace("\n", " ")
    for part in ("kvsim 0.1.0", "seed 7", "timing: datasheet", "pool: given: 2,588 blocks"):
        assert part in foot


def test_each_kind_of_mark_is_drawn_once_per_event():
    result = fake_result()
    marks = memory_over_time(result).axes[1]
    drawn = {round(-line.get_lineoffset()): len(line.get_positions()) for line in marks.collections}
    outcomes = result.tables["events"]["outcome"]
    assert drawn == {0: outcomes.count("preempt"), 1: outcomes.count("reject"), 2: outcomes.count("abort")}
    assert min(drawn.values()) > 0


def test_a_run_without_events_draws_no_marks():
    result = fake_result()
    result.tables["events"] = {}
    assert len(memory_over_time(result).axes[1].collections) == 0


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


def test_equal_results_give_equal_bytes(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        save_figure(memory_over_time(fake_result()), tmp_path / folder, "memory")
    for name in ("memory.png", "memory.svg"):
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
