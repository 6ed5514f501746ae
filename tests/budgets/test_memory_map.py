"""A map of 100,000 changes stays responsive: it is drawn in pieces, and a frame of it playing is short."""

import json
import statistics

import pytest

from kvsim.reporting.inputs import Subject
from kvsim.reporting.page import pictures, write_report
from tests.fake_results import fake_result
from tests.reporting.page.browsing import browser, needs_browser, wait_until

pytestmark = [pytest.mark.browser, pytest.mark.budget, needs_browser]

OWNERS, REACH, STEPS = 40, 1000, 2500
"""So many requests write a slot each in every step, each in its own part of the pool."""

FRAME_MS = 25
"""Of a frame, in the median: 40 a second."""


def decoding(name):
    """A run of 100,000 changes: in every step each request writes a slot; when its room is full the next one begins."""
    rows = [
        (step * 0.02, owner * REACH + (step + owner * 25) % REACH, 1, owner + OWNERS * ((step + owner * 25) // REACH))
        for step in range(STEPS)
        for owner in range(OWNERS)
    ]
    result = fake_result(name, rows=40, count=4 * OWNERS)
    columns = [list(column) for column in zip(*rows, strict=True)]
    result.tables["addresses"] = {
        **dict(zip(("time_s", "start", "length", "request"), columns, strict=True)),
        "sample": [0] * len(rows),
        "class": ["used"] * len(rows),
    }
    return result


def test_a_map_of_100_000_changes_draws_and_plays_smoothly(tmp_path, monkeypatch):
    monkeypatch.setattr(pictures, "FIGURES", ())
    written = write_report(Subject(name="long", results=[decoding("one"), decoding("two")]), tmp_path, formats=())
    assert [(one.recorded, one.instants) for one in written.maps] == [(100_000, 0)] * 2
    with browser(tmp_path / "profile") as driver:
        driver.get(written.page.as_uri())
        wait_until(driver, "document.getElementById('map').dataset.drawn === 'true'")
        first = driver.execute_script("return kvsim.frames")
        driver.execute_script("kvsim.frames.length = 0; document.querySelector('[data-part=play]').click()")
        wait_until(driver, "kvsim.frames.length >= 60")
        playing = driver.execute_script("return kvsim.frames")
    told = {"first ms": sum(first), "longest of them": max(first), "playing": statistics.median(playing)}
    print(json.dumps({name: round(number, 1) for name, number in told.items()}))
    assert statistics.median(playing) < FRAME_MS
    assert max(first) < 40 * FRAME_MS
    assert sum(first) < 5000
