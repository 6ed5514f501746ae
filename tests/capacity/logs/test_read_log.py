"""Files that are read, and files that are refused."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvsim.capacity.logs import read_log
from kvsim.errors import InputError

LINE = "INFO 10-06 12:00:31 [kv_cache_utils.py:1087] GPU KV cache size: 41,408 tokens\n"


def test_a_path_is_read_as_the_text_would_be(tmp_path):
    file = tmp_path / "vllm.log"
    file.write_text(LINE)
    assert read_log(file) == read_log(str(file)) == read_log(f"{LINE}\n")


def test_bytes_that_are_no_utf_8_are_read_over(tmp_path):
    file = tmp_path / "vllm.log"
    file.write_bytes(b"\xff\xfe\x00 caf\xe9\n" + LINE.encode())
    log = read_log(file)
    assert (log.numbers["kv_tokens"].value, log.numbers["kv_tokens"].line_number) == (41_408, 2)


def test_a_progress_bar_on_the_same_line_hides_nothing(tmp_path):
    file = tmp_path / "vllm.log"
    file.write_bytes(b"Loading shards: 50%|#####\rLoading shards: 100%|##########\r" + LINE.encode())
    assert read_log(file).numbers["kv_tokens"].value == 41_408


def test_a_large_file_is_never_held_in_memory(tmp_path):
    file = tmp_path / "vllm.log"
    with file.open("w") as log:
        log.write(LINE)
        log.write("x" * (24 << 20) + "\n")  # one line of 24 MiB
        log.writelines("INFO traffic\n" for _ in range(200_000))
    tracemalloc.start()
    read_log(file)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 << 20


def test_reading_ends_when_the_server_is_up(tmp_path):
    file = tmp_path / "vllm.log"
    file.write_text(f"{LINE}INFO:     Application startup complete.\nINFO GPU KV cache size: 1 tokens\n")
    log = read_log(file)
    assert (log.outcome, log.numbers["kv_tokens"].value) == ("started", 41_408)


def test_another_service_that_comes_up_first_ends_nothing():
    log = read_log(f"router | INFO:     Application startup complete.\n{LINE}")
    assert (log.outcome, log.numbers["kv_tokens"].value) == ("unknown", 41_408)


def test_a_file_that_is_no_log_is_refused_with_what_was_looked_for(tmp_path):
    file = tmp_path / "notes.txt"
    file.write_text("nothing of the kind\n")
    with pytest.raises(InputError, match=r"notes\.txt: no start-up log .*`GPU KV cache size: .*`KV Cache is allocated"):
        read_log(file)


def test_an_empty_file_is_refused(tmp_path):
    file = tmp_path / "empty.log"
    file.touch()
    with pytest.raises(InputError, match="no start-up log"):
        read_log(file)


@pytest.mark.parametrize("name", ["missing.log", "."])
def test_a_file_that_cannot_be_read_is_named(tmp_path, name):
    with pytest.raises(InputError, match=r"cannot be read \(.*\); give the start-up log"):
        read_log(tmp_path / name)


def test_line_numbers_are_those_of_an_editor_even_after_a_line_too_long_to_read(tmp_path):
    file = tmp_path / "vllm.log"
    file.write_text("x" * (3 << 20) + "\n" + LINE)
    assert read_log(file).numbers["kv_tokens"].line_number == 2


PIECES = (
    "GPU KV cache size: ", " tokens", "Available KV cache memory: ", " GiB", "Maximum concurrency for ", "x",
    "non-default args: {", "'max_model_len': ", "server_args=ServerArgs(", "KV Cache is allocated.", " #tokens: ",
    "[MemUsageChange] Allocated ", " for max tokens in paged KV cache (", ")", "Free memory on device (", "/", ",", ".",
    "-", "1.2.3", "41,408", "8.60", "\n", "\r", "(Worker_TP0 pid=1) ", "\x1b[1m", "'", "((", "out of memory",
)  # fmt: skip


@given(st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=5)), max_size=30).map("".join))
def test_whatever_the_lines_hold_they_are_read_or_refused(text):
    try:
        log = read_log(f"{LINE}{text}")
    except InputError:
        return
    assert all(number.low <= number.value <= number.high for number in log.numbers.values())
