"""Parquet tables, whole and damaged."""

import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kvsim.errors import InputError
from kvsim.workload.readers.options import ReadOptions
from kvsim.workload.trace.recording import Recording

ROWS = [{"arrival_s": n / 4, "prompt_tokens": 10 + n, "output_tokens": 1 + n} for n in range(5000)]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.parquet"
    pq.write_table(pa.Table.from_pylist(ROWS), path)
    return path


def test_a_table_under_kvsims_own_names_is_known_and_read_in_pieces(table):
    recording = Recording(table)
    assert recording.reader.format == "table"
    requests = list(recording)
    assert [request.prompt_tokens for request in requests] == [row["prompt_tokens"] for row in ROWS]
    assert requests[3].arrival_ps == 750 * 10**9
    assert recording.report.rows_read == 5000


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"prompt_tokens": None}, "column prompt_tokens: None: missing"),
        ({"prompt_tokens": 0}, "a prompt of 0 tokens"),
        ({"arrival_s": float("nan")}, "column arrival_s: "),
        ({"arrival_s": None}, "column arrival_s: None: missing"),
    ],
)
def test_a_bad_row_is_named_by_its_number(tmp_path, row, said):
    path = tmp_path / "table.parquet"
    pq.write_table(pa.Table.from_pylist([ROWS[0], ROWS[1] | row]), path)
    with pytest.raises(InputError) as caught:
        list(Recording(path))
    assert str(caught.value).startswith(f"{path}: row 2, ")
    assert said in str(caught.value)
    assert len(list(Recording(path, on_bad_row="drop"))) == 1


def test_a_table_of_other_columns_says_how_to_name_them(tmp_path):
    path = tmp_path / "table.parquet"
    pq.write_table(pa.Table.from_pylist([{"a": 1, "b": 2}]), path)
    with pytest.raises(InputError, match=r"parquet with 'a, b'; known formats: .*--columns"):
        list(Recording(path))
    with pytest.raises(InputError, match=r"column prompt_tokens \(prompt\) is missing"):
        list(Recording(path, format="table"))
    assert len(list(Recording(path, format="table", options=ReadOptions(columns={"prompt": "a", "output": "b"})))) == 1


def test_a_date_that_python_has_no_value_for_is_refused_by_its_row(tmp_path):
    path = tmp_path / "table.parquet"
    days = pa.array([0, 0, 10**7], pa.date32())
    pq.write_table(
        pa.table({"arrival_s": [0, 1, 2], "prompt_tokens": [1] * 3, "output_tokens": [1] * 3, "d": days}), path
    )
    with pytest.raises(InputError, match=f"^{path}: after row 0: the Parquet file is damaged or cut off"):
        list(Recording(path))


def said_of(path, reading):
    """Lines of the message about a file, which begins with its name; None where it can be read."""
    try:
        reading(path)
    except InputError as error:
        return str(error).count("\n") + 1 if str(error).startswith(str(path)) else 0
    return None


def test_a_damaged_file_is_refused_in_one_line(table, tmp_path):
    whole = table.read_bytes()
    draws = random.Random("parquet")
    path = tmp_path / "damaged.parquet"
    for number in range(300):
        at = draws.randrange(4, len(whole))
        damaged = whole[:at] if number % 2 else whole[:at] + bytes([whole[at] ^ 255]) + whole[at + 1 :]
        path.write_bytes(damaged)
        assert said_of(path, lambda damaged: list(Recording(damaged, on_bad_row="drop"))) in (None, 1)
