"""Results are read strictly: what cannot be right is one line with file and line, what is not known is ignored."""

import csv
import io
import json

import pytest

from kvsim.errors import InputError
from kvsim.microbench.export import to_csv
from kvsim.microbench.results import read_results
from tests.microbench.oracle import Oracle, records, write


@pytest.fixture
def rows():
    return list(records(Oracle("H200", 132)))


def refusal(path):
    with pytest.raises(InputError) as caught:
        read_results(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_run_is_read_whole(tmp_path, rows):
    found = read_results(write(tmp_path / "r.jsonl", rows))
    [run] = found.runs
    assert len(run.points) == len(rows) - 2
    assert run.env.sm_count == 132
    assert run.end.complete


def test_fields_that_nobody_knows_yet_are_ignored(tmp_path, rows):
    rows[0]["humidity"] = 0.4
    rows[1]["params"]["tile"] = 128
    rows.insert(2, {"type": "skip", "bench": "gemm", "params": {}, "reason": "budget", "why": 1})
    rows.insert(2, {"type": "error", "bench": "alloc", "params": {}, "code": 2, "message": "out of memory"})
    [run] = read_results(write(tmp_path / "r.jsonl", rows)).runs
    assert run.skipped == [{"bench": "gemm", "reason": "budget"}]
    assert run.errors == [{"bench": "alloc", "message": "out of memory"}]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"median_s": 0}, "median_s is 0; it must be a number above 0"),
        ({"median_s": None}, "median_s is None"),
        ({"p10_s": 1e3}, "are not in order"),
        ({"role": "train"}, "role is 'train'; it must be one of fit, holdout, anchor"),
        ({"bench": "gemv"}, "bench is 'gemv'; it must be one of hbm, gemm"),
        ({"variant": "fp4"}, "variant is 'fp4'; of hbm it must be one of read, write, copy"),
        ({"params": 7}, "params is 7"),
        ({"params": {}}, "params of hbm: bytes is missing"),
        ({"params": {"bytes": 0}}, "params of hbm: bytes is 0; it must be a whole number, 1 or more"),
        ({"verified": "yes"}, "verified is 'yes'; it must be true, false or null"),
        ({"bytes": -1}, "bytes is -1"),
        ({"type": "dot"}, "type is 'dot'; it must be env, point, skip, error or end"),
    ],
)
def test_a_point_that_cannot_be_is_refused_with_its_line(tmp_path, rows, changed, said):
    rows[1] |= changed
    message = refusal(write(tmp_path / "r.jsonl", rows))
    assert message.startswith(f"{tmp_path / 'r.jsonl'}, line 2: ")
    assert said in message


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"schema": 2}, "schema is 2; this kvsim reads 1"),
        ({"backend": "rocm"}, "backend is 'rocm'; it must be one of cuda, emulated, fake"),
        ({"sm_count": 0}, "sm_count is 0"),
        ({"device": ""}, "device is ''; it must be a text"),
    ],
)
def test_an_env_that_cannot_be_is_refused(tmp_path, rows, changed, said):
    rows[0] |= changed
    assert said in refusal(write(tmp_path / "r.jsonl", rows))


def test_heads_that_cannot_be_grouped_are_refused(tmp_path, rows):
    at = next(at for at, row in enumerate(rows) if row.get("bench") == "decode_attn")
    rows[at]["params"]["heads"] = 33
    assert "heads is 33; it must be a multiple of kv_heads" in refusal(write(tmp_path / "r.jsonl", rows))


def test_a_line_that_breaks_off_is_refused_as_such(tmp_path, rows):
    path = write(tmp_path / "r.jsonl", rows)
    path.write_text(path.read_text()[:-40])
    assert f"line {len(rows)}: is no JSON" in refusal(path)
    assert "cut short" in refusal(path)


def test_not_a_number_is_no_json(tmp_path, rows):
    rows[1]["rel_err"] = float("nan")
    assert "NaN is no number of JSON" in refusal(write(tmp_path / "r.jsonl", rows))


def test_points_before_an_env_and_after_an_end_are_refused(tmp_path, rows):
    assert "before any env" in refusal(write(tmp_path / "r.jsonl", rows[1:]))
    assert "after the end" in refusal(write(tmp_path / "r.jsonl", [*rows, rows[1]]))


def test_a_file_of_nothing_or_none_is_refused(tmp_path):
    (tmp_path / "empty.jsonl").write_text("\n")
    (tmp_path / "bytes.jsonl").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "list.jsonl").write_text("[]\n")
    assert "holds no record" in refusal(tmp_path / "empty.jsonl")
    assert "is no text in UTF-8" in refusal(tmp_path / "bytes.jsonl")
    assert "must be one JSON object" in refusal(tmp_path / "list.jsonl")
    assert "cannot be read" in refusal(tmp_path / "no.jsonl")


def test_points_become_a_flat_table(tmp_path, rows):
    found = read_results(write(tmp_path / "r.jsonl", rows))
    table = list(csv.DictReader(io.StringIO(to_csv(found))))
    assert len(table) == len(found.points)
    one = next(row for row in table if row["bench"] == "gemm" and row["role"] == "fit")
    written = next(row for row in rows if row.get("bench") == "gemm" and row["role"] == "fit")
    assert int(one["params.m"]) == written["params"]["m"]
    assert float(one["median_s"]) == written["median_s"]
    assert one["params.chunks"] == ""
    assert one["verified"] == "true"
    assert json.loads(one["rel_err"]) == written["rel_err"]
