"""The page of a report says what was asked and answered, and shows what a reader needs to check it."""

from kvsim.reporting.question.header import Question
from kvsim.reporting.question.readme import Beside, Page, Shown, markdown_table, sweep_facts, sweep_tables

ASKED = Question(question="How large should a block be?", shows="One model.", expect="Something.")


def test_the_question_comes_first_then_the_answer_then_the_figure():
    page = Page(name="x", question=ASKED, answer="16.", commands=["kvsim run"], figures=[Shown("a.png", "A line.")])
    lines = [line for line in page.text().splitlines() if line]
    assert lines[:4] == ["# How large should a block be?", "**16.**", "![A line.](a.png)", "*A line.*"]
    assert "```\nkvsim run\n```" in page.text()


def test_what_is_not_there_leaves_no_heading():
    text = Page(name="x", question=Question(), answer="16.", commands=["kvsim run"]).text()
    assert text.startswith("# x\n")
    assert [line for line in text.splitlines() if line.startswith("#")] == ["# x", "## Again"]


def test_published_numbers_stand_beside_simulated_ones_with_their_distance():
    beside = [Beside("batch", 30.42, 30.4), Beside("used", 96.3, 82.1, "%"), Beside("none", 0, 1.5)]
    text = Page(name="x", question=ASKED, answer="16.", commands=[], published=beside, source="A paper.").text()
    assert "## Published beside simulated\n\nA paper.\n" in text
    assert "| batch | 30.4 | 30.4 | -0.1 % |" in text
    assert "| used, % | 96.3 | 82.1 | -14.2 points |" in text
    assert "| none | 0 | 1.50 |  |" in text


def test_a_cell_cannot_break_the_table():
    assert markdown_table(["a|b", "c"], [["<script>", "1"]]).splitlines() == [
        "| a\\|b | c |",
        "| --- | ---: |",
        "| &lt;script> | 1 |",
    ]


def _sweep(notes):
    return {
        "axes": [{"key": "workload.rate"}],
        "provenance": {"timing": ["datasheet"], "workload": ["a", "b"]},
        "notes": notes,
        "not_modelled": ["sampling"],
        "points": [
            {
                "variant": None,
                "changes": {"workload.rate": "2/s"},
                "metrics": {"hit_rate": {"mean": 0.5, "min": 0.4, "max": 0.6}, "ttft_s.p50": None},
            }
        ],
    }


def test_a_sweep_has_a_row_a_point_in_the_measures_units():
    (table,) = sweep_tables(_sweep([]))
    assert table.splitlines()[2:] == [
        "| workload.rate | hit rate, % | TTFT p50, s |",
        "| --- | ---: | ---: |",
        "| 2/s | 50.0 | - |",
    ]


def test_notes_that_differ_in_numbers_alone_are_told_once():
    facts, gaps = sweep_facts(_sweep(["Out of range. by 2", "Out of range. by 3", "Another."]))
    assert facts[:3] == ["step times: estimated from data sheets", "workload: a", "workload: b"]
    assert facts[3:] == ["Note: Out of range. by 2 And 1 like it.", "Note: Another."]
    assert gaps == ["sampling"]
