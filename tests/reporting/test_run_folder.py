"""A run folder holds everything that a run was and gave, under names that a file system takes."""

import json
import re

import pytest

from kvsim.errors import InputError
from kvsim.metrics.columns import TABLES
from kvsim.metrics.result import COLUMNS, Result
from kvsim.reporting.comparison import comparison_summary
from kvsim.reporting.run_folder import check_run_folder, check_writable, folder_names, write_comparison, write_run
from kvsim.step import CLASSES
from tests.fake_results import fake_result


def test_a_run_leaves_scenario_summary_tables_and_figure(tmp_path):
    written = write_run(fake_result(), tmp_path / "new" / "run")
    names = {path.name for path in written}
    assert names == {
        "scenario.yaml",
        "resolved.json",
        "summary.json",
        *(f"{table}.parquet" for table in COLUMNS),
        "memory_over_time.png",
        "memory_over_time.svg",
        "README.md",
    }
    assert {path.name for path in (tmp_path / "new" / "run").iterdir()} == names


def test_a_run_without_a_pool_leaves_no_figure(tmp_path):
    result = fake_result("no-cache")
    result.metrics["pool_tokens"] = None
    write_run(result, tmp_path)
    assert not list(tmp_path.glob("*.png"))
    assert (tmp_path / "summary.json").exists()


def test_a_comparison_leaves_a_folder_per_variant_and_the_summary_of_all(tmp_path):
    results = [fake_result("contiguous"), fake_result("paged/1")]
    told = []
    write_comparison("azure", results, tmp_path, lambda fraction, text: told.append((fraction, text)))
    assert json.loads((tmp_path / "summary.json").read_text()) == comparison_summary("azure", results)
    assert Result.load(tmp_path / "paged-1").summary == results[1].summary
    assert (tmp_path / "contiguous" / "memory_over_time.svg").exists()
    assert (tmp_path / "comparison.png").exists()
    assert (tmp_path / "comparison.svg").exists()
    assert [text for _, text in told] == ["writing contiguous", "writing paged/1", "writing the comparison"]
    assert [fraction for fraction, _ in told] == pytest.approx([0, 1 / 3, 2 / 3])


def test_the_folder_of_a_comparison_is_not_taken_for_a_run(tmp_path):
    write_comparison("azure", [fake_result("a")], tmp_path)
    with pytest.raises(InputError, match="sub-folder of a variant"):
        Result.load(tmp_path)


def test_names_become_folders_of_their_own():
    assert folder_names(["paged", "Paged", "a b/c", "..", "a-b-c"]) == [
        "paged",
        "Paged-2",
        "a-b-c",
        "run",
        "a-b-c-2",
    ]


def test_a_folder_that_can_be_made_is_not_made_before_the_run(tmp_path):
    assert check_writable(tmp_path / "a" / "b") == tmp_path / "a" / "b"
    assert not (tmp_path / "a").exists()


def test_a_file_is_no_folder_to_write_to(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"-o .*file: is a file"):
        check_writable(tmp_path / "file")
    with pytest.raises(InputError, match="is a file; name a folder that can be made"):
        check_writable(tmp_path / "file" / "below")


def test_a_folder_that_may_not_be_written_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.raises(InputError, match=f"{tmp_path} cannot be written"):
        check_writable(tmp_path / "run")


def test_the_readme_of_a_run_has_a_line_for_every_file_and_every_column(tmp_path):
    written = write_run(fake_result(), tmp_path)
    text = (tmp_path / "README.md").read_text()
    for path in written:
        assert (path.name == "README.md") or text.count(f"- `{path.name}`: ") == 1
    for table, columns in COLUMNS.items():
        section = text.split(f"## {table}.parquet\n")[1].split("## ")[0]
        assert re.findall(r"^\| `(\w+)` \| (\w+) \| \S", section, flags=re.MULTILINE) == list(columns.items())


@pytest.mark.parametrize(("table", "column"), [(table, name) for table in TABLES for name in TABLES[table].columns])
def test_the_meaning_of_a_column_says_the_unit_that_its_name_has(table, column):
    units = {"s": "seconds", "tokens": "tokens"}
    unit = units.get(column.rpartition("_")[2], "slots" if column in CLASSES else "")
    assert unit in TABLES[table].columns[column].meaning


def test_the_readme_of_a_comparison_names_its_runs_and_files(tmp_path):
    write_comparison("azure", [fake_result("contiguous"), fake_result("paged/1")], tmp_path)
    text = (tmp_path / "README.md").read_text()
    for name in ("contiguous/", "paged-1/", "summary.json", "comparison.png", "comparison.svg"):
        assert f"- `{name}`: " in text
    assert ".parquet" not in text


def test_a_comparison_without_a_pool_has_no_figure_and_names_none(tmp_path):
    result = fake_result("no-cache")
    result.metrics["pool_tokens"] = None
    write_comparison("azure", [result], tmp_path)
    assert not list(tmp_path.glob("**/*.png"))
    assert "png" not in (tmp_path / "README.md").read_text()


def test_a_folder_may_be_new_empty_or_one_of_ours(tmp_path):
    (tmp_path / "empty").mkdir()
    write_run(fake_result(), tmp_path / "run")
    write_comparison("azure", [fake_result()], tmp_path / "comparison")
    (tmp_path / "comparison" / "summary.json").unlink()  # interrupted: only a variant is whole
    for name in ("new", "empty", "run", "comparison"):
        assert check_run_folder(tmp_path / name) == tmp_path / name


def test_a_folder_with_anything_else_in_it_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(InputError, match=r"-o .*: is not empty and holds no run \(no summary\.json\); name a new"):
        check_run_folder(tmp_path)
