"""The phases as people see them: slots in the order of the block table, numbers in the figures, a README that holds."""

import pytest

from kvsim.catalog.models import model
from kvsim.reporting.explain.figures import draw_phase
from kvsim.reporting.explain.folder import readme
from kvsim.reporting.explain.pool import rows
from kvsim.reporting.explain.text import PHASES, sections
from kvsim.study.explain.example import walk
from kvsim.study.explain.request_bytes import request_bytes


@pytest.fixture(scope="module")
def walked():
    return walk()


@pytest.fixture(scope="module")
def request_of_a_model():
    return request_bytes(model("qwen2.5-1.5b"), 200, 100)


def texts(figure):
    return [text.get_text() for axes in figure.axes for text in axes.texts] + [text.get_text() for text in figure.texts]


@pytest.mark.parametrize("phase", PHASES)
def test_every_row_of_the_pool_has_all_of_its_slots(walked, phase):
    given = walked.example
    for _, slots in rows(walked, phase):
        assert len(slots) == given.pool_blocks * given.block_size
        assert all(bool(slot.token) == (slot.kind in ("used", "cached")) for slot in slots)


def test_a_second_request_owns_what_it_found_and_the_rest_of_the_first_stays_cached(walked):
    [_, _, (_, found), (_, written)] = rows(walked, "prefill")
    assert [(slot.kind, slot.token) for slot in found[:6]] == [
        ("used", "I"),
        ("used", "love"),
        ("reserved", ""),
        ("reserved", ""),
        ("cached", "AI"),
        ("cached", "very"),
    ]
    assert written[2] == ("used", "AI")


@pytest.mark.parametrize(
    ("phase", "numbers"),
    [
        ("allocate", {"1", "0", "I", "love", "AI"}),
        ("prefill", {"0.378", "0.622", "0.212", "0.576", "0.788", "0.424", "1.500"}),
        ("decode", {"0.243", "0.232", "0.266", "0.260", "0.721", "0.686", "0.617", "very"}),
        ("release", {"very"}),
    ],
)
def test_the_figure_of_a_phase_shows_its_numbers_and_where_they_come_from(walked, phase, numbers):
    said = texts(draw_phase(walked, phase))
    labels = {label.get_text() for axes in draw_phase(walked, phase).axes for label in axes.get_yticklabels()}
    assert numbers <= set(said) | labels
    assert any("exact, no error expected" in text for text in said)


def test_only_the_four_phases_have_a_figure(walked):
    with pytest.raises(KeyError):
        draw_phase(walked, "given")


def test_lines_fit_80_columns_and_the_readme_has_every_section_and_the_source(walked, request_of_a_model):
    every = sections(walked, request_of_a_model)
    assert all(len(line) <= 80 for section in every for line in section.lines)
    text = readme(walked, request_of_a_model)
    assert [line for line in text.splitlines() if line.startswith("## ")] == [f"## {one.title}" for one in every]
    assert walked.example.source in text
