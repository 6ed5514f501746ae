"""A run folder holds everything that a run was and gave, under names that a file system takes."""

import json

import pytest

from kvsim.errors import InputError
from kvsim.metrics.result import COLUMNS, Result
from kvsim.reporting.comparison import comparison_summary
from kvsim.reporting.run_folder import check_writable, folder_names, write_comparison, write_run
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
    assert told == [(0.0, "writing contiguous"), (0.5, "writing paged/1")]


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
