"""What a page says first: the question of the scenario, and the answer that its head gives a form for."""

from dataclasses import replace

from kvsim.reporting.inputs import Subject
from kvsim.reporting.page.content import content_of
from tests.fake_results import fake_result

HEAD = "# Question: does it fit?\n# Answer:   {paged: mean_running} run at once.\nname: paged\n"


def content(given):
    return content_of(Subject(name="x", results=[replace(fake_result(), scenario_given=given)]))


def test_the_question_is_the_description_and_its_answer_the_first_finding():
    said = content(HEAD)
    assert said.description == "Does it fit?"
    assert said.findings[0] == "24.2 run at once."
    assert len(said.findings) == 2


def test_an_answer_that_asks_for_other_variants_is_left_out():
    said = content(HEAD.replace("paged: mean", "radix: mean"))
    assert said.description == "Does it fit?"
    assert len(said.findings) == 1


def test_a_scenario_without_a_head_has_neither():
    said = content("name: paged\n")
    assert said.description == ""
    assert len(said.findings) == 1
