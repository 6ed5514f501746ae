"""A Result keeps its contract: what it stores, what it refuses, and that equal runs leave equal bytes."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kvsim.errors import InputError
from kvsim.metrics.result import COLUMNS, Result, to_json
from kvsim.step import CLASSES
from tests.fake_results import POOL_TOKENS, fake_result

ROOT = Path(__file__).parents[2]


def test_the_summary_has_exactly_the_keys_of_the_contract():
    assert list(fake_result().summary) == [
        "schema",
        "name",
        "seed",
        "version",
        "provenance",
        "expected_error",
        "not_modelled",
        "notes",
        "metrics",
        "pools",
    ]


def test_wall_time_is_never_stored(tmp_path):
    fake_result(wall_s=123.456).save(tmp_path)
    for path in tmp_path.glob("*.json"):
        assert "wall" not in path.read_text()
        assert "123.456" not in path.read_text()
    assert Result.load(tmp_path).wall_s is None


def test_a_saved_run_is_read_back_whole(tmp_path):
    result = fake_result()
    result.save(tmp_path)
    back = Result.load(tmp_path)
    assert back.summary == result.summary
    assert back.scenario_given == result.scenario_given
    assert back.scenario_resolved == result.scenario_resolved
    for table, columns in result.tables.items():
        assert back.tables[table] == {name: list(columns[name]) for name in COLUMNS[table]}


def test_equal_results_leave_equal_bytes_whatever_the_wall_time(tmp_path):
    fake_result(wall_s=1.0).save(tmp_path / "a")
    fake_result(wall_s=2.0).save(tmp_path / "b")
    names = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert names == sorted(
        ["scenario.yaml", "resolved.json", "summary.json", *(f"{table}.parquet" for table in COLUMNS)]
    )
    for name in names:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_a_run_without_any_event_still_has_a_typed_events_table(tmp_path):
    result = fake_result()
    result.tables["events"] = {}
    result.save(tmp_path)
    assert Result.load(tmp_path).tables["events"] == {name: [] for name in COLUMNS["events"]}
    assert list(result.events.columns) == list(COLUMNS["events"])


def test_frames_carry_missing_values_as_missing():
    frame = fake_result(count=100).requests
    assert len(frame) == 100
    assert frame["ttft_s"].isna().sum() == 2
    assert frame["finish_reason"].isna().sum() == 2
    assert frame["max_tokens"].isna().sum() == 50
    assert frame["max_tokens"].iloc[0] == 256
    assert str(frame["prompt_tokens"].dtype) == "int64"


def test_the_memory_frame_adds_up_to_the_pool_in_every_row():
    frame = fake_result().memory
    assert (frame[list(CLASSES)].sum(axis=1) == POOL_TOKENS).all()


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_does_not_exist_never_reaches_json(tmp_path, number):
    result = fake_result()
    result.metrics["ttft_s"]["p50"] = number
    with pytest.raises(ValueError, match=r"metrics\.ttft_s\.p50"):
        result.save(tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_json_names_the_place_of_a_bad_number_in_a_list():
    with pytest.raises(ValueError, match=r"pools\[1\]\.free"):
        to_json({"pools": [{"free": 1.0}, {"free": float("nan")}]})


def test_a_missing_number_is_null():
    assert json.loads(to_json({"hit_rate": None})) == {"hit_rate": None}


def test_columns_of_unequal_length_are_refused(tmp_path):
    result = fake_result()
    result.tables["events"]["cause"] = ["capacity"]
    with pytest.raises(ValueError, match="events"):
        result.save(tmp_path / "run")
    with pytest.raises(ValueError, match="unequal"):
        _ = result.events


def test_an_unknown_column_is_refused_by_name():
    result = fake_result()
    result.tables["steps"]["colour"] = [1]
    with pytest.raises(ValueError, match="colour"):
        _ = result.steps


def test_a_folder_that_holds_no_run_is_named(tmp_path):
    with pytest.raises(InputError, match=r"summary\.json.*kvsim run -o DIR"):
        Result.load(tmp_path)


def test_a_damaged_summary_is_named(tmp_path):
    fake_result().save(tmp_path)
    (tmp_path / "summary.json").write_text('{"schema": 1,')
    with pytest.raises(InputError, match=r"summary\.json: is not JSON"):
        Result.load(tmp_path)


def test_a_damaged_table_is_named(tmp_path):
    fake_result().save(tmp_path)
    (tmp_path / "steps.parquet").write_bytes(b"no parquet")
    with pytest.raises(InputError, match=r"steps\.parquet: is not a Parquet file"):
        Result.load(tmp_path)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("summary.json", b'{"schema": 1, "metrics": {}, "name": "a"}', "seed is not what a run writes there"),
        ("resolved.json", b'{"schema": 1}', "schema is no setting with its value and source"),
        ("scenario.yaml", b"\xd0\xcf", "is not UTF-8"),
        ("gaps.json", b'{"schema": 1}', "is no histogram of gaps"),
    ],
)
def test_a_file_of_something_else_is_named(tmp_path, file, content, message):
    fake_result().save(tmp_path)
    (tmp_path / file).write_bytes(content)
    with pytest.raises(InputError, match=rf"{re.escape(file)}: {message}.*write the run folder again"):
        Result.load(tmp_path)


def test_a_table_in_the_place_of_another_is_named(tmp_path):
    fake_result().save(tmp_path)
    (tmp_path / "requests.parquet").write_bytes((tmp_path / "memory.parquet").read_bytes())
    with pytest.raises(InputError, match=r"requests\.parquet: has a column \w+, unlike the table requests of a run"):
        Result.load(tmp_path)


def test_a_summary_of_another_schema_is_refused(tmp_path):
    fake_result().save(tmp_path)
    summary = json.loads((tmp_path / "summary.json").read_text())
    (tmp_path / "summary.json").write_text(json.dumps(summary | {"schema": 2}))
    with pytest.raises(InputError, match="schema is 2; this version reads 1"):
        Result.load(tmp_path)


def test_a_summary_is_printed_without_loading_numpy_pandas_or_pyarrow():
    program = (
        "import sys\n"
        "from tests.fake_results import fake_result\n"
        "from kvsim.metrics.result import to_json\n"
        "to_json(fake_result().summary)\n"
        "print(sorted({'numpy', 'pandas', 'pyarrow', 'matplotlib'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"
