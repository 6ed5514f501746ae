"""The Azure reader: three forms of one CSV, and every way in which a row or a file can be wrong."""

import gzip
import os
import re

import pytest

from kvsim.errors import InputError
from kvsim.workload.streams import Streams
from kvsim.workload.trace import TraceTraffic

HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens"
GOOD = "2023-11-16 18:15:46.6805900,374,44"
LATER = "2023-11-16 18:15:50.9951690,396,109"


@pytest.fixture
def trace(tmp_path):
    def write(*lines, name="trace.csv", ending="\n"):
        path = tmp_path / name
        path.write_bytes(ending.join([*lines, ""]).encode())
        return path

    return write


def read(path, **options):
    return list(TraceTraffic(path, **options).rows(Streams(0)))


def message(path, **options):
    with pytest.raises(InputError) as caught:
        read(path, **options)
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert "\n" not in text
    return text.removeprefix(f"{path}: ")


# Forms of the file


def test_the_2023_form_counts_time_from_the_first_row_exactly(trace):
    assert read(trace(HEADER, GOOD, LATER)) == [(0, 374, 44), (4_314_579_000_000, 396, 109)]


def test_the_2024_form_has_a_zone_and_leaves_out_a_fraction_of_zero(trace):
    rows = ["2024-05-10 00:00:00.009930+00:00,2162,5", "2024-05-10 00:00:01+00:00,2399,6"]
    assert read(trace(HEADER, *rows)) == [(0, 2162, 5), (990_070_000_000, 2399, 6)]


def test_the_2025_form_is_iso_and_its_images_are_reported_as_ignored(trace):
    path = trace(
        "TIMESTAMP,NumImages,ContextTokens,GeneratedTokens",
        "2024-10-15T12:00:00.269Z,0,770,491",
        "2024-10-15T12:00:05.819Z,1,949,126",
    )
    assert read(path) == [(0, 770, 491), (5_550_000_000_000, 949, 126)]
    assert TraceTraffic(path).survey().ignored_columns == ("NumImages",)


def test_columns_go_by_name_not_by_place(trace):
    assert read(trace("GeneratedTokens,ContextTokens,TIMESTAMP", "44,374,2023-11-16 18:15:46")) == [(0, 374, 44)]


def test_gzip_is_told_by_content_whatever_the_name(trace, tmp_path):
    plain = trace(HEADER, GOOD, LATER, name="plain.gz")
    zipped = tmp_path / "zipped.csv"
    zipped.write_bytes(gzip.compress(plain.read_bytes()))
    assert read(zipped) == read(plain)


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_any_line_ending_will_do(trace, ending):
    assert len(read(trace(HEADER, GOOD, LATER, ending=ending))) == 2


def test_a_missing_last_newline_trailing_blank_lines_quotes_and_a_byte_order_mark_do_no_harm(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_bytes(f'\ufeff"TIMESTAMP",ContextTokens,GeneratedTokens\n"{GOOD[:27]}",374,44\n\n\n'.encode())
    assert read(path) == [(0, 374, 44)]
    path.write_bytes(f"{HEADER}\n{GOOD}".encode())
    assert read(path) == [(0, 374, 44)]


def test_a_whole_number_with_a_decimal_point_counts(trace):
    assert read(trace(HEADER, "2023-11-16 18:15:46,374.0,44.")) == [(0, 374, 44)]


# Bad rows

BAD_ROWS = [
    ("2023-11-16 18:15:47,nan,5", "ContextTokens", "'nan': not a number"),
    ("2023-11-16 18:15:47,5,NaN", "GeneratedTokens", "'NaN': not a number"),
    ("2023-11-16 18:15:47,-3,5", "ContextTokens", "'-3': negative prompt tokens"),
    ("2023-11-16 18:15:47,5,-3", "GeneratedTokens", "'-3': negative output tokens"),
    ("2023-11-16 18:15:47,0,5", "ContextTokens", "'0': a prompt of 0 tokens"),
    ("2023-11-16 18:15:47,5,0", "GeneratedTokens", "'0': an output of 0 tokens (a failed call)"),
    ("2023-11-16 18:15:47,5,0.0", "GeneratedTokens", "'0.0': an output of 0 tokens (a failed call)"),
    ("2023-11-16 18:15:47,many,5", "ContextTokens", "'many': not a number"),
    ("2023-11-16 18:15:47,1_000,5", "ContextTokens", "'1_000': not a whole number"),
    ("2023-11-16 18:15:47,1.5,5", "ContextTokens", "'1.5': not a whole number"),
    ("2023-11-16 18:15:47,inf,5", "ContextTokens", "'inf': more tokens than any context window"),
    (f"2023-11-16 18:15:47,{'9' * 5000},5", "ContextTokens", "more tokens than any context window"),
    (
        "2023-11-16 18:15:47,2147483648,5",
        "ContextTokens",
        "'2147483648': more tokens than any context window",
    ),
    ("2023-11-16 18:15:47,,5", "ContextTokens", "'': empty cell"),
    ("2023-11-16 18:15:47,5, ", "GeneratedTokens", "' ': empty cell"),
    (",5,5", "TIMESTAMP", "'': empty cell"),
    ("soon,5,5", "TIMESTAMP", "'soon': not a time"),
    ("2023-11-16 18:15:47,5", None, "'2023-11-16 18:15:47,5': 2 columns, not 3"),
    ("2023-11-16 18:15:47,5,5,5", None, "4 columns, not 3"),
    ("", None, "blank line"),
]


@pytest.mark.parametrize(("bad", "column", "what"), BAD_ROWS)
def test_a_bad_row_is_an_error_that_names_row_line_column_value_and_cure(trace, bad, column, what):
    text = message(trace(HEADER, GOOD, bad, LATER))
    place = "row 2 (line 3 of the file)" + (f", column {column}" if column else "")
    assert text.startswith(f"{place}: ")
    assert what in text
    assert re.search(r"; (write|remove) .*, or set `on_bad_row: drop` to leave it out$", text)
    assert len(text) < 300


@pytest.mark.parametrize(("bad", "column", "what"), BAD_ROWS)
def test_a_bad_row_can_be_dropped_and_is_counted_by_its_reason(trace, bad, column, what):
    traffic = TraceTraffic(trace(HEADER, GOOD, bad, LATER), on_bad_row="drop")
    assert list(traffic.rows(Streams(0))) == [(0, 374, 44), (4_314_579_000_000, 396, 109)]
    report = traffic.survey()
    assert (report.rows_read, report.rows_kept, list(report.dropped.values())) == (3, 2, [1])
    (reason,) = report.dropped
    assert what.endswith(reason)


def test_time_counts_from_the_first_row_that_is_kept(trace):
    path = trace(HEADER, "2023-11-16 18:00:00,5,0", GOOD, LATER)
    assert read(path, on_bad_row="drop")[0] == (0, 374, 44)


def test_rows_out_of_order_are_an_error_that_says_where_and_what_to_do(trace):
    text = message(trace(HEADER, LATER, GOOD))
    assert text.startswith("row 2 (line 3 of the file), column TIMESTAMP: 4.31458 s earlier than the row before; ")
    assert text.endswith("set `sort: true`")


def test_dropping_bad_rows_does_not_drop_rows_that_are_out_of_order(trace):
    assert "earlier than the row before" in message(trace(HEADER, LATER, GOOD), on_bad_row="drop")


def test_sorting_puts_rows_in_order_and_keeps_ties_in_file_order(trace):
    path = trace(HEADER, LATER, GOOD, GOOD.replace("374", "375"))
    assert read(path, sort=True) == [(0, 374, 44), (0, 375, 44), (4_314_579_000_000, 396, 109)]


# Bad files


@pytest.mark.parametrize(
    ("lines", "what"),
    [
        ([], "the trace is empty"),
        (["", HEADER, GOOD], "the first line is blank; it must name the columns"),
        ([HEADER], "the trace is empty: it has a header and no rows"),
        (
            [GOOD, LATER],
            "no header of a known format; known formats: azure, burstgpt, vidur",
        ),
        (["TIMESTAMP,ContextTokens", GOOD], "column GeneratedTokens is missing; the header is"),
        ([HEADER + ",TIMESTAMP", GOOD], "column TIMESTAMP is there twice"),
        ([HEADER, '"2023-11-16 18:15:46.6805900,374,44', LATER], "is not CSV"),
    ],
)
def test_a_file_that_is_no_trace_is_an_error_that_says_why(tmp_path, lines, what):
    path = tmp_path / "trace.csv"
    path.write_text("\n".join(lines))
    assert what in message(path)


def test_a_named_format_says_which_column_is_missing(trace):
    assert "column TIMESTAMP is missing" in message(trace("arrived_at,x", "1,2"), format="azure")


def test_a_trace_without_one_good_row_is_an_error_that_counts_the_reasons(trace):
    text = message(trace(HEADER, "soon,5,5", "later,5,5", "2023-11-16 18:15:47,5,0"), on_bad_row="drop")
    assert "no row of 3 is usable (1 x an output of 0 tokens (a failed call), 2 x not a time)" in text


def test_text_that_is_not_utf8_is_an_error_that_names_the_line(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_bytes(f"{HEADER}\n{GOOD}\n".encode() + b"2023-11-16 18:15:47,\xff,5\n")
    assert message(path).startswith("line 3 is not UTF-8 text")


def test_a_gzip_file_cut_off_is_an_error(tmp_path):
    path = tmp_path / "trace.csv.gz"
    path.write_bytes(gzip.compress("\n".join([HEADER, *[GOOD] * 500]).encode())[:-20])
    text = message(path)
    cut = int(re.match(r"the gzip data is damaged or cut off after line (\d+) \(", text)[1])
    assert 0 < cut <= 501


def test_text_that_is_not_utf8_in_a_gzip_file_cut_off_is_an_error(tmp_path):
    path = tmp_path / "trace.csv.gz"
    rows = f"{HEADER}\n".encode() + b"2023-11-16 18:15:47,\xff,5"
    path.write_bytes(gzip.compress(rows)[:-8])
    assert message(path).startswith("the gzip data is damaged or cut off")


def test_columns_of_any_name_are_told_on_one_line_that_is_not_endless(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text(f"{HEADER},a\x0bb,{','.join(f'column {number}' for number in range(5000))}\n{GOOD}\n")
    text = message(path)
    assert text.startswith("row 1 (line 2 of the file): ")
    assert r"write TIMESTAMP, ContextTokens, GeneratedTokens, a\x0bb, column 0, " in text
    assert len(text) < 1000


def test_a_gzip_file_with_a_flipped_byte_is_an_error(tmp_path):
    data = bytearray(gzip.compress("\n".join([HEADER, *[GOOD] * 500]).encode()))
    data[20] ^= 0xFF
    path = tmp_path / "trace.csv.gz"
    path.write_bytes(data)
    with pytest.raises(InputError):
        read(path)


def test_an_empty_folder_or_a_pipe_is_no_trace(tmp_path):
    assert message(tmp_path).startswith("it is of no known format: folder with ''; known formats: azure, burstgpt")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert message(pipe).startswith("not a file but a folder, pipe or device")


def test_a_file_that_vanishes_between_two_readings_is_an_error(trace):
    path = trace(HEADER, GOOD)
    traffic = TraceTraffic(path)
    path.unlink()
    with pytest.raises(InputError, match="cannot be read \\(No such file"):
        traffic.survey()
