"""The folder of a study: pieces that are whole or not there, and nothing but its own study."""

import pyarrow.parquet as pq
import pytest

from kvsim.errors import InputError
from kvsim.scenario.resolve import Scenario, load
from kvsim.study.store import PIECES, STUDY, TABLE, Identity, Store, run_key, table_bytes
from tests.study.sweeps.small import SCENARIO, YAML

IDENTITY = Identity("small", "1.0", None, 1, [], [{"seed": 1}], 3, "f" * 64)


def outcome(key):
    return {"key": key, "error": None, "metrics": {"steps": 3, "share": 0.1}}


def test_what_was_added_is_there_when_the_store_is_opened_again(tmp_path):
    store = Store(tmp_path / "s", IDENTITY, resume=False)
    store.add([outcome("a"), outcome("b")])
    store.add([outcome("c")])
    again = Store(tmp_path / "s", IDENTITY, resume=True)
    assert again.outcomes == {key: outcome(key) for key in "abc"}
    assert not list((tmp_path / "s" / PIECES).glob(".*"))


def test_closing_makes_one_piece_of_all_that_does_not_depend_on_how_they_came(tmp_path):
    pieces = {}
    for name, order in (("one", ["abc"]), ("three", ["c", "a", "b"])):
        store = Store(tmp_path / name, IDENTITY, resume=False)
        for piece in order:
            store.add([outcome(key) for key in piece])
        store.close(b"table", ["a", "b", "c"])
        [piece] = (tmp_path / name / PIECES).iterdir()
        pieces[name] = piece.name, piece.read_bytes()
        assert (tmp_path / name / TABLE).read_bytes() == b"table"
        assert list(Store(tmp_path / name, IDENTITY, resume=True).outcomes) == ["a", "b", "c"]
    assert pieces["one"] == pieces["three"]


def test_a_study_of_which_nothing_was_done_leaves_nothing(tmp_path):
    Store(tmp_path / "s", IDENTITY, resume=False).close(b"table", ["a"])
    assert list(tmp_path.iterdir()) == []


def test_a_study_is_gone_on_with_only_where_somebody_says_so(tmp_path):
    Store(tmp_path / "s", IDENTITY, resume=True)
    with pytest.raises(InputError, match="holds this study already; go on with it with --resume"):
        Store(tmp_path / "s", IDENTITY, resume=False)


def test_another_study_is_refused_and_says_what_differs(tmp_path):
    Store(tmp_path / "s", IDENTITY, resume=False)
    other = Identity("small", "1.1", 7, 1, [], [{"seed": 2}], 3, "e" * 64)
    with pytest.raises(InputError) as error:
        Store(tmp_path / "s", other, resume=True)
    said = str(error.value)
    assert "holds another study (version is 1.0 there and 1.1 here; seed is the scenario's own there and 7" in said
    assert "; its points are others)" in said


def test_a_changed_scenario_is_another_study_though_its_points_are_the_same(tmp_path):
    Store(tmp_path / "s", IDENTITY, resume=False)
    other = Identity("small", "1.0", None, 1, [], [{"seed": 1}], 3, "e" * 64)
    with pytest.raises(InputError, match="its scenario, or a file that it names, was another"):
        Store(tmp_path / "s", other, resume=True)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"kvsim": "run"}', '{"kvsim": "study", "fingerprint": 3}'])
def test_a_study_file_that_is_damaged_is_refused(tmp_path, text):
    (tmp_path / STUDY).write_text(text)
    with pytest.raises(InputError, match=r"study\.json: is damaged or no study of kvsim"):
        Store(tmp_path, IDENTITY, resume=True)


def test_a_folder_with_something_else_is_refused_and_left_alone(tmp_path):
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(InputError, match=r"is not empty and holds no study \(no study\.json\)"):
        Store(tmp_path, IDENTITY, resume=True)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("damage", [lambda text: text[:-5], lambda text: text.replace(b"0.1", b"0.2"), lambda _: b""])
def test_a_damaged_piece_is_told_and_once_deleted_its_runs_are_missing(tmp_path, damage):
    store = Store(tmp_path / "s", IDENTITY, resume=False)
    store.add([outcome("a")])
    [piece] = (tmp_path / "s" / PIECES).iterdir()
    store.add([outcome("b")])
    piece.write_bytes(damage(piece.read_bytes()))
    with pytest.raises(InputError, match=f"{piece.name}: is damaged .*; delete this file, and --resume runs again"):
        Store(tmp_path / "s", IDENTITY, resume=True)
    piece.unlink()
    assert list(Store(tmp_path / "s", IDENTITY, resume=True).outcomes) == ["b"]


def test_a_key_stands_for_settings_contents_of_files_seed_and_version_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = run_key(Scenario.from_dict(SCENARIO), 0, "1")
    renamed = {**SCENARIO, "name": "other", "description": "the same"}
    assert run_key(Scenario.from_dict(renamed), 0, "1") == first
    assert run_key(Scenario.from_dict({**SCENARIO, "seed": 5}), 0, "1") == first
    (tmp_path / "a.yaml").write_text(YAML)
    assert run_key(load("a.yaml"), 0, "1") == first
    assert (
        len({first, run_key(Scenario.from_dict(SCENARIO), 1, "1"), run_key(Scenario.from_dict(SCENARIO), 0, "2")}) == 3
    )
    assert run_key(Scenario.from_dict({**SCENARIO, "pool": {"tokens": 20016}}), 0, "1") != first


def test_a_trace_with_other_rows_is_another_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46,374,44\n")
    scenario = Scenario.from_dict({**SCENARIO, "workload": {"trace": "t.csv"}})
    first = run_key(scenario, 0, "1")
    (tmp_path / "t.csv").write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46,374,45\n")
    assert run_key(scenario, 0, "1") != first
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "u.csv").write_text((tmp_path / "t.csv").read_text())
    moved = Scenario.from_dict({**SCENARIO, "workload": {"trace": "sub/u.csv"}})
    assert run_key(moved, 0, "1") == run_key(scenario, 0, "1")


def test_columns_have_the_type_of_their_values_and_units_stand_in_the_file(tmp_path):
    rows = [
        {"n": 1, "x": 1, "rate": 2.0, "flag": True, "mixed": 1, "none": None, "error": None, "large": 2**70},
        {"n": None, "x": 0.5, "rate": 4.0, "flag": None, "mixed": "paged", "none": None, "error": None, "late": 3},
    ]
    text = table_bytes(rows, metadata={"study": "f"}, units={"rate": "/s"}, texts=("error",))
    assert text == table_bytes(rows, metadata={"study": "f"}, units={"rate": "/s"}, texts=("error",))
    (tmp_path / "t.parquet").write_bytes(text)
    schema = pq.read_schema(tmp_path / "t.parquet")
    types = {field.name: str(field.type) for field in schema}
    assert types == {
        "n": "int64",
        "x": "double",
        "rate": "double",
        "flag": "bool",
        "mixed": "string",
        "none": "double",
        "error": "string",
        "large": "string",
        "late": "int64",
    }
    assert schema.field("rate").metadata == {b"unit": b"/s"}
    assert schema.metadata[b"study"] == b"f"
    assert pq.read_table(tmp_path / "t.parquet")["mixed"].to_pylist() == ["1", "paged"]
