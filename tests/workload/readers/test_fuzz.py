"""Damaged traces: every reader, every way of damage; one message with the file's name, or a good reading, never more.

`KVSIM_DATA` adds the format samples there to the forms written here.
"""

import gzip
import os
import random
from pathlib import Path

import pytest

from kvsim.cli.main import main
from kvsim.errors import InputError
from kvsim.workload.readers.options import ReadOptions
from kvsim.workload.trace.recording import Recording
from tests.effort import examples
from tests.workload.readers.forms import FORMS, TEXT

DATA = os.environ.get("KVSIM_DATA")
SAMPLES = sorted(Path(DATA, "traces", "format_samples").glob("*.gz")) if DATA else []

VALUES = (
    *(
        b"NaN",
        b"-1",
        b"0",
        b"null",
        b"true",
        b"[]",
        b"{}",
        b'"x"',
        b'""',
        b"1e999999999999999999",
        b"-0.5",
        b"Infinity",
    ),
    *(
        b"9" * 5000,
        b"1" * 30,
        b"[[[[1]]]]",
        b'{"a": [1]}',
        b"\xff\xfe",
        b"\x00",
        "ｘ".encode(),
        b'"\\ud800"',
        b"2" * 12,
    ),
)


def pristine():
    yield from ((name, form.text.encode(), form.options) for name, form in FORMS.items())
    for path in SAMPLES:
        yield path.name, gzip.decompress(path.read_bytes()), TEXT


PRISTINE = {name: (data, options) for name, data, options in pristine()}


def damaged(data, draws):
    """One way or another in which a file can be wrong."""
    way = draws.randrange(9)
    at = draws.randrange(len(data))
    rows = data.split(b"\n")
    row = draws.randrange(len(rows))
    if way == 0:
        return data[:at]
    if way == 1:
        return data[:at] + bytes([draws.randrange(256)]) + data[at + 1 :]
    if way == 2:
        return b"\n".join([*rows[: row + 1], *rows[row:]])
    if way == 3:
        return b"\n".join([*rows[:row], *rows[row + 1 :]])
    if way == 4:
        draws.shuffle(rows)
        return b"\n".join(rows)
    if way == 5:
        return data.replace(b"\n", draws.choice([b"\r\n", b"\r", b"\n\n"]))
    if way == 6:
        return b"\xef\xbb\xbf" + data if draws.random() < 0.5 else data.decode("utf-8", "replace").encode("utf-16")
    # A value somewhere becomes another: numbers, strings and lists alike.
    import re

    found = list(re.finditer(rb'-?\d+(?:\.\d+)?|"[^"]*"|\[[^\[\]]*\]', data))
    if not found:
        return data[at:]
    chosen = draws.choice(found)
    value = draws.choice(VALUES if way == 7 else [one[0] for one in found])
    return data[: chosen.start()] + value + data[chosen.end() :]


def read(path, options, **more):
    """Read it all; a message must be one line that names the file."""
    try:
        requests = list(Recording(path, options=options, **more))
    except InputError as error:
        text = str(error)
        assert text.startswith(str(path)), text
        assert "\n" not in text
        assert len(text) < 1500
        return None
    for request in requests:
        assert request.failed or (request.prompt_tokens > 0 and request.output_tokens > 0)
        assert all(link.delay_ps is None or link.delay_ps >= 0 for link in request.after)
    return requests


@pytest.mark.parametrize("name", PRISTINE)
def test_a_damaged_file_is_read_or_refused_in_one_line(tmp_path, name):
    data, options = PRISTINE[name]
    draws = random.Random(name)
    path = tmp_path / "trace"
    refused = 0
    for number in range(examples(120)):
        changed = damaged(data, draws)
        path.write_bytes(gzip.compress(changed, mtime=0) if number % 4 == 0 else changed)
        for on_bad_row in ("error", "drop"):
            refused += read(path, options, on_bad_row=on_bad_row) is None
    assert refused > 0


@pytest.mark.parametrize("name", FORMS)
def test_a_damaged_file_that_is_called_what_it_was_is_read_or_refused_in_one_line(tmp_path, name):
    """With its format given, readers see what detection would have kept from them."""
    data, options = PRISTINE[name]
    draws = random.Random(f"{name} named")
    path = tmp_path / "trace"
    for _ in range(examples(60)):
        path.write_bytes(damaged(data, draws))
        read(path, options, format=name)


@pytest.mark.parametrize("name", FORMS)
def test_no_reader_falls_over_a_file_of_another_format(tmp_path, name):
    for other, form in FORMS.items():
        if other != name:
            read(form.write(tmp_path), TEXT, format=name, on_bad_row="drop")


@pytest.mark.parametrize("name", FORMS)
def test_a_gzip_file_cut_off_anywhere_is_refused_and_says_so(tmp_path, name):
    form = FORMS[name]
    whole = gzip.compress(form.text.encode(), mtime=0)
    path = tmp_path / "trace.gz"
    for end in range(3, len(whole) - 1, 7):
        path.write_bytes(whole[:end])
        with pytest.raises(InputError, match=f"^{path}: the (gzip data is|trace is empty)"):
            list(Recording(path, options=form.options))


@pytest.mark.parametrize("name", FORMS)
def test_a_damaged_file_whose_gzip_data_are_damaged_too_is_read_or_refused_in_one_line(tmp_path, name):
    data, options = PRISTINE[name]
    draws = random.Random(f"{name} twice")
    path = tmp_path / "trace.gz"
    for _ in range(30):
        zipped = bytearray(gzip.compress(damaged(data, draws) + b"\xff", mtime=0))
        zipped[draws.randrange(2, len(zipped))] ^= 1 << draws.randrange(8)
        path.write_bytes(zipped[: draws.choice([len(zipped), draws.randrange(len(zipped))])])
        read(path, options, on_bad_row=draws.choice(["error", "drop"]))


@pytest.mark.parametrize("name", ["azure", "mooncake", "weka", "sharegpt", "bailian"])
def test_on_the_command_line_a_damaged_trace_ends_with_exit_2_and_one_line(tmp_path, name, capsys):
    form, draws = FORMS[name], random.Random(f"{name} command")
    path = tmp_path / "trace"
    ends = set()
    for _ in range(25):
        path.write_bytes(damaged(form.text.encode(), draws))
        code = main(["trace", "inspect", str(path), "--chars-per-token", "4", "--json"])
        out, err = capsys.readouterr()
        ends.add(code)
        if code:
            assert (code, out) == (2, "")
            assert err.startswith(f"kvsim: {path}")
            assert err.count("\n") == 1
    assert 2 in ends


def test_options_that_a_trace_of_texts_needs_are_not_in_the_way_elsewhere(tmp_path):
    assert read(FORMS["azure"].write(tmp_path), ReadOptions(chars_per_token=4)) is not None
