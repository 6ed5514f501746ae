"""The page of a report says what was asked and answered, and shows what a reader needs to check it."""

from kvsim.reporting.question.answer import measured
from kvsim.reporting.question.header import Question
from kvsim.reporting.question.numbers import numbers_of
from kvsim.reporting.question.readme import (
    Beside,
    Page,
    Shown,
    cliff_facts,
    cliff_tables,
    markdown_table,
    sweep_facts,
    sweep_tables,
)

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


def _rate(rate_per_s, **others):
    seconds = {"ttft_p99_s": 0.5, "tpot_p99_s": 0.03, "mean_running": 4.0, "mean_waiting": 0.0, "used_share": 0.25}
    return {"rate_per_s": rate_per_s, **seconds, "preemptions": 0.0, **others}


CLIFF = {
    "knee_per_s": 2.0,
    "preemption_onset_per_s": None,
    "queue_blow_up_per_s": 2.5,
    "saturated_from_per_s": 3.0,
    "low_load_ttft_p99_s": 0.5,
    "replications": 3,
    "rates": [_rate(1.0), _rate(2.0), _rate(3.0, preemptions=4.5)],
    "provenance": {"timing": "datasheet"},
    "notes": ["a note"],
    "not_modelled": ["sampling"],
}


def test_a_cliff_has_a_row_a_rate_with_its_marks():
    (table,) = cliff_tables(CLIFF)
    assert table.splitlines()[4:] == [
        "| 1.00 | 0.5 | 30.0 | 4.00 | 0 | 25.0 | 0 |  |",
        "| 2.00 | 0.5 | 30.0 | 4.00 | 0 | 25.0 | 0 | knee |",
        "| 3.00 | 0.5 | 30.0 | 4.00 | 0 | 25.0 | 4.50 | the queue grows |",
    ]
    assert cliff_facts(CLIFF) == (
        [
            "step times: estimated from data sheets",
            "each rate: the mean of 3 runs on streams that all rates share",
            "Note: a note",
        ],
        ["sampling"],
    )


def test_an_answer_may_name_a_mark_and_what_was_measured_there():
    numbers = numbers_of(CLIFF)
    assert measured("all: knee_per_s", numbers) == 2.0
    assert measured("knee: ttft_p99_s ms", numbers) == 500
    assert measured("saturated from: preemptions", numbers) == 4.5
    assert "preemption onset" not in numbers
