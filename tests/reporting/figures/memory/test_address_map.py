"""The map of the memory: what the changes say, at the right place and time."""

import numpy as np
import pytest

from kvsim.reporting.figures.memory.address_map import MOST_COLUMNS, MOST_ROWS, SHADES, _points, memory_map
from kvsim.reporting.run_folder import write_run
from kvsim.reporting.style import save_figure
from kvsim.step import CLASSES
from tests.fake_results import POOL_TOKENS, fake_result

FREE = CLASSES.index("free") * len(SHADES)


def changes(*rows):
    names = ("time_s", "start", "length", "request", "sample", "class")
    return {name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


def recorded():
    result = fake_result()
    result.tables["addresses"] = changes(
        (0.0, 0, 2000, 4, 0, "reserved"), (20.0, 0, 1500, 4, 0, "used"), (60.0, 0, 2000, None, None, "free")
    )
    return result


def test_a_point_shows_what_its_slot_holds_in_the_middle_of_its_time():
    points = _points(changes((2.0, 1, 2, 3, 0, "used"), (5.0, 1, 1, None, None, "free")), 4, 1, 10.0)
    assert points.shape == (4, MOST_COLUMNS)
    at_2, at_5 = MOST_COLUMNS // 5, MOST_COLUMNS // 2
    expected = np.full((4, MOST_COLUMNS), FREE)
    expected[1, at_2:at_5] = expected[2, at_2:] = CLASSES.index("used") * len(SHADES)
    assert (points == expected).all()


def test_a_row_of_several_slots_shows_the_class_of_most_of_them():
    points = _points(changes((0.0, 0, 3, 0, 0, "used"), (0.0, 3, 3, 0, 0, "reserved")), 8, 4, 1.0)
    assert points[:, 0].tolist() == [CLASSES.index(name) * len(SHADES) for name in ("used", "reserved")]


def test_requests_with_neighbouring_ids_have_shades_of_their_own():
    points = _points(
        changes((0.0, 0, 1, 6, 0, "used"), (0.0, 1, 1, 7, 0, "used"), (0.0, 2, 1, 6, 1, "used")), 3, 1, 1.0
    )
    assert points[0, 0] != points[1, 0] == points[2, 0]


def test_the_map_of_a_large_pool_says_how_many_slots_a_row_is_and_shows_only_classes_that_occur():
    figure = memory_map(recorded())
    texts = " ".join(text.get_text() for text in figure.texts)
    assert POOL_TOKENS / 64 < MOST_ROWS < POOL_TOKENS / 32
    assert "a row of points is 64 slots" in texts
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["used", "reserved", "free"]


def test_equal_maps_are_equal_bytes(tmp_path):
    for name in ("one", "two"):
        save_figure(memory_map(recorded()), tmp_path, name)
    for form in ("png", "svg"):
        assert (tmp_path / f"one.{form}").read_bytes() == (tmp_path / f"two.{form}").read_bytes()


def test_without_addresses_there_is_nothing_to_draw():
    with pytest.raises(ValueError, match="no addresses"):
        memory_map(fake_result())


def test_a_run_folder_has_the_map_of_a_run_that_recorded_addresses_and_no_old_one(tmp_path):
    names = {path.name for path in write_run(recorded(), tmp_path)}
    assert names >= {"addresses.parquet", "memory_map.png", "memory_map.svg"}
    readme = (tmp_path / "README.md").read_text()
    assert "`memory_map.png`: what lies at which address" in readme
    assert "## addresses.parquet" in readme
    write_run(fake_result(), tmp_path)
    assert not list(tmp_path.glob("memory_map.*"))
    assert not (tmp_path / "addresses.parquet").exists()
