"""What a page says first: the question of the scenario, and the answer that its head gives a form for."""

from dataclasses import replace

from kvsim.reporting.inputs import Subject
from kvsim.reporting.page.content import content_of
from tests.fake_results import fake_result
from tests.reporting.study.test_study_table import study

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


def test_a_study_of_replications_says_what_is_of_the_first_alone():
    results = [fake_result("naive"), fake_result("paged")]
    said = content_of(Subject(name="x", results=results, study=study()))
    assert said.glance.note.startswith("Of the first of 10 replications. ")
    assert said.notes[0].startswith("Figures, cards and tables are of the first of 10 replications; intervals")
    for other in (None, study(method="batches")):
        said = content_of(Subject(name="x", results=results, study=other))
        assert "replications" not in said.glance.note + " ".join(said.notes)
