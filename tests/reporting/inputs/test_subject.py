"""What a report is about is read back from folders, and what is wrong with one is told by its name."""

import json

import pytest

from kvsim.errors import InputError
from kvsim.reporting.inputs import is_folder, load_subject
from kvsim.reporting.run_folder import write_comparison, write_run
from kvsim.reporting.study.summary import study_of, study_summary
from kvsim.reporting.study.table import in_short, rows
from kvsim.reporting.sweep import write_sweep
from kvsim.study.sweeps.points import grid
from tests.fake_results import fake_result
from tests.reporting.study.test_study_table import study
from tests.reporting.sweep.test_sweep_report import GRID, made_up


def test_a_run_and_a_comparison_are_results(tmp_path):
    write_run(fake_result("alone"), tmp_path / "run", figures=False)
    write_comparison("both", [fake_result("a"), fake_result("b/c")], tmp_path / "two", figures=False)
    assert [one.name for one in load_subject([tmp_path / "run"]).results] == ["alone"]
    subject = load_subject([tmp_path / "two"])
    assert (subject.name, [one.name for one in subject.results]) == ("both", ["a", "b/c"])
    together = load_subject([tmp_path / "two", tmp_path / "run"])
    assert [one.name for one in together.results] == ["a", "b/c", "alone"]


def test_runs_of_one_name_are_told_apart_by_their_folders(tmp_path):
    for folder in ("first", "second"):
        write_run(fake_result("paged"), tmp_path / folder, figures=False)
    subject = load_subject([tmp_path / "first", tmp_path / "second"])
    assert [one.name for one in subject.results] == ["paged", "second: paged"]


def test_runs_and_folders_of_one_name_are_told_apart_by_more_of_their_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a/run", "b/run", "c/run"):
        fake_result("paged").save(name)
    names = [result.name for result in load_subject(["a/run", "b/run", "c/run", "c/run"]).results]
    assert names == ["paged", "run: paged", "c/run: paged", "c/run: paged (2)"]


def test_a_study_is_read_back_whole_from_its_summary(tmp_path):
    made = study(notes=["short runs"], target=0.05)
    write_comparison("both", [fake_result("naive"), fake_result("paged")], tmp_path, study=made, figures=False)
    found = load_subject([tmp_path]).study
    assert list(rows(found)) == list(rows(made))
    assert in_short(found) == in_short(made)
    assert study_summary(found) == study_summary(made)
    assert study_of(study_summary(found)).notes == ["short runs"]


def test_a_sweep_is_a_table_of_its_points_and_the_figure_that_lies_there(tmp_path):
    write_sweep(made_up(grid({"workload.rate": ["10/s", "2/s"], "seed": [1]}, GRID), failing=(1,)), tmp_path)
    [exhibit] = load_subject([tmp_path]).exhibits
    [sheet] = exhibit.sheets
    assert (exhibit.kind, [one.stem for one in exhibit.figures]) == ("sweep", ["sweep"])
    assert list(sheet.columns)[:3] == ["workload.rate", "seed", "TTFT p99, s"]
    assert [[cell.number for cell in row][:3] for row in sheet.rows] == [[10.0, 1.0, 0.5], [2.0, 1.0, None]]
    assert [row[-1].number for row in sheet.rows] == [0, 1]
    assert (exhibit.notes, exhibit.not_modelled) == (["slow"], ["sampling"])
    assert exhibit.findings == [
        "2 points: TTFT p99 goes from 0.50 s (workload.rate=10/s seed=1) to 0.50 s (workload.rate=10/s seed=1)."
    ]


def test_any_other_record_is_facts_and_tables(tmp_path):
    record = {
        "schema": 1,
        "name": "cheapest",
        "goal": {"ttft_s": 2.0, "reached": True},
        "gpus": ["H100", "A100"],
        "candidates": [{"gpu": "H100", "cost": {"per_hour": 2.5}}, {"gpu": "A100", "tokens": 1_000_000}],
        "notes": ["prices are yours"],
    }
    (tmp_path / "check.json").write_text(json.dumps(record))
    (tmp_path / "bars.svg").write_text("<svg></svg>")
    [exhibit] = load_subject([tmp_path]).exhibits
    candidates, facts = exhibit.sheets
    assert [[cell.text for cell in row] for row in facts.rows] == [
        ["goal.ttft_s", "2.000"],
        ["goal.reached", "yes"],
        ["gpus", "H100, A100"],
    ]
    assert list(candidates.columns) == ["gpu", "cost.per_hour", "tokens"]
    assert [[cell.text for cell in row] for row in candidates.rows] == [
        ["H100", "2.500", "-"],
        ["A100", "-", "1,000,000"],
    ]
    assert (exhibit.name, exhibit.kind, exhibit.notes) == ("cheapest", "check", ["prices are yours"])


@pytest.mark.parametrize(
    ("file", "key"), [("hit_curve.json", "answer"), ("cliff.json", "answer"), ("diagnosis.json", "verdict")]
)
def test_what_a_record_answers_is_the_finding_and_no_fact(tmp_path, file, key):
    (tmp_path / file).write_text(json.dumps({key: "It breaks at 2/s.", "seed": 0}))
    [exhibit] = load_subject([tmp_path]).exhibits
    assert exhibit.findings == ["It breaks at 2/s."]
    [facts] = exhibit.sheets
    assert [row[0].text for row in facts.rows] == ["seed"]


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("other.json", "{}", "holds nothing to report"),
        ("plan.json", "{}", r"plan\.json: is not what a plan writes there"),
        ("plan.json", "[1]", r"plan\.json: holds a list, not an object"),
        ("summary.json", "{", r"summary\.json: is not JSON"),
        ("plan.json", '{"cost": NaN}', r"plan\.json: is not JSON \(NaN is no JSON\)"),
        ("summary.json", '{"variants": [1]}', r"summary\.json: is not what a comparison writes there"),
        ("summary.json", '{"points": [], "axes": [1]}', r"summary\.json: is not what a sweep writes there"),
        ("summary.json", '{"schema": 1}', r"summary\.json: holds no metrics of one run"),
    ],
)
def test_what_is_no_input_is_told_with_its_file(tmp_path, file, text, message):
    (tmp_path / file).write_text(text)
    with pytest.raises(InputError, match=message):
        load_subject([tmp_path])


def test_a_comparison_without_one_of_its_runs_names_the_file_that_is_missing(tmp_path):
    write_comparison("both", [fake_result("a"), fake_result("b")], tmp_path, figures=False)
    (tmp_path / "b" / "summary.json").unlink()
    with pytest.raises(InputError, match=r"b/summary\.json: cannot be read"):
        load_subject([tmp_path])


def test_what_is_not_there_is_told(tmp_path):
    with pytest.raises(InputError, match="is not there; name a folder"):
        is_folder(str(tmp_path / "nowhere"))
