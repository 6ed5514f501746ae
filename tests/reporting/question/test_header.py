"""What a scenario's head asks."""

from pathlib import Path

import pytest

from kvsim.reporting.question.header import Question, question_of

SCENARIOS = sorted((Path(__file__).parents[3] / "scenarios").glob("*.yaml"))

TEXT = """\
# Question: how large should a block be,
#           if ends are wasted?
# Shows:    one model
# Answer:   blocks of 16 waste {16: waste_share %}.
name: block-size
# Expect:   not a part of the head
"""


def test_each_part_is_running_text_that_begins_with_a_capital():
    assert question_of(TEXT) == Question(
        question="How large should a block be, if ends are wasted?",
        shows="One model",
        expect="",
        answer="Blocks of 16 waste {16: waste_share %}.",
    )


def test_a_text_without_a_head_asks_nothing():
    assert question_of("name: x\nmodel: y\n") == Question()
    assert question_of("") == Question()


def test_a_colon_within_the_text_begins_no_part():
    assert question_of("# Shows:    two kinds: a and b\n#           note: c\n").shows == "Two kinds: a and b note: c"


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_every_scenario_asks_shows_and_expects(path):
    asked = question_of(path.read_text("utf-8"))
    assert asked.question.endswith(("?", ".", "?)")) or "?" in asked.question
    assert asked.shows
    assert asked.expect
