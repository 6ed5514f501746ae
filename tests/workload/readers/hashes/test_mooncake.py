"""The Mooncake and Bailian readers: rows, prompts, and every way in which a row can be wrong."""

import gzip
import json

import pytest

from kvsim.errors import InputError
from kvsim.request import PS_PER_S
from kvsim.workload.streams import Streams
from kvsim.workload.trace import TraceTraffic
from kvsim.workload.trace.prefixes import read_prefixes

FIRST = {"timestamp": 0, "input_length": 1000, "output_length": 5, "hash_ids": [7, 9]}
SECOND = {"timestamp": 27482, "input_length": 1024, "output_length": 6, "hash_ids": [7, 8]}
CHAT = {"chat_id": 159, "parent_chat_id": -1, "timestamp": 61.114, "input_length": 40, "output_length": 132}
CHAT |= {"type": "text", "turn": 1, "hash_ids": [3, 4, 5]}


@pytest.fixture
def trace(tmp_path):
    def write(*rows):
        path = tmp_path / "trace.jsonl"
        path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
        return path

    return write


def rows(path, **options):
    return list(TraceTraffic(path, **options).rows(Streams(0)))


def message(read, path, **options):
    with pytest.raises(InputError) as caught:
        read(path, **options)
    return str(caught.value).removeprefix(f"{path}: ")


def test_mooncake_counts_milliseconds(trace):
    path = trace(FIRST, SECOND)
    assert rows(path) == [(0, 1000, 5), (27_482 * PS_PER_S // 1000, 1024, 6)]
    assert TraceTraffic(path).survey().format == "mooncake"


def test_bailian_counts_seconds_exactly(trace):
    path = trace(CHAT, CHAT | {"timestamp": 63.021})
    assert rows(path) == [(0, 40, 132), (1_907_000_000_000, 40, 132)]
    assert TraceTraffic(path).survey().format == "bailian"


def test_a_run_says_that_identities_are_there(trace):
    assert TraceTraffic(trace(FIRST)).describe()["prefix_identity"] == "real"


def test_prompts_are_blocks_numbered_in_order_of_appearance(trace):
    found = read_prefixes(trace(FIRST, SECOND))
    assert [list(blocks) for blocks in found.blocks] == [[0, 1], [0, 2]]
    assert list(found.tokens) == [1000, 1024]
    assert (found.block_tokens, found.distinct_blocks, found.other_ways) == (512, 3, 0)


def test_full_blocks_leave_out_what_is_partly_filled(trace):
    assert [list(blocks) for blocks in read_prefixes(trace(FIRST, SECOND)).full()] == [[0], [0, 2]]


def test_a_block_has_16_tokens_in_bailian_and_what_the_file_says_in_mooncake(trace):
    assert read_prefixes(trace(CHAT)).block_tokens == 16
    assert read_prefixes(trace(FIRST | {"block_size": 500})).block_tokens == 500


def test_who_calls_says_best_how_large_a_block_is(trace):
    assert read_prefixes(trace(FIRST | {"block_size": 64}), block_tokens=600).block_tokens == 600


def test_prompts_need_no_time_and_no_output(trace):
    turn = {"session_id": "a", "delay": 4000, "input_length": 600, "output_length": 0, "hash_ids": [7, 9]}
    assert len(read_prefixes(trace(FIRST, turn)).blocks) == 2


def test_a_prompt_may_have_no_id_for_its_last_tokens(trace):
    assert [list(blocks) for blocks in read_prefixes(trace(FIRST | {"hash_ids": [7]})).blocks] == [[0]]


def test_ids_behind_other_ids_than_before_are_counted(trace):
    assert read_prefixes(trace(FIRST, FIRST | {"hash_ids": [9, 7]})).other_ways == 2


def test_the_first_so_many_requests_are_read_and_no_further(trace):
    assert len(read_prefixes(trace(FIRST, SECOND, "broken"), requests=2).blocks) == 2


def test_gzip_and_blank_lines_do_no_harm(trace, tmp_path):
    zipped = tmp_path / "zipped"
    zipped.write_bytes(gzip.compress(trace(FIRST, "", SECOND, "").read_bytes()))
    assert len(rows(zipped)) == len(read_prefixes(zipped).blocks) == 2


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("{", "row 2 (line 2 of the file): '{': not JSON"),
        ("[1]", "row 2 (line 2 of the file): '[1]': no JSON object; write one JSON object a line"),
        ('{"timestamp": NaN}', "NaN is no JSON"),
        ({"input_length": 9, "output_length": 9, "delay": 5}, "column timestamp: None: missing; write a number"),
        (FIRST | {"timestamp": "soon"}, "column timestamp: 'soon': not a time"),
        (FIRST | {"timestamp": True}, "column timestamp: True: not a time"),
        ('{"timestamp": 1e999}', "column timestamp: Decimal('1E+999'): not a time"),
        (FIRST | {"input_length": 0}, "column input_length: '0': a prompt of 0 tokens"),
        (FIRST | {"input_length": 1.5}, "column input_length: '1.5': not a whole number"),
        (FIRST | {"output_length": None}, "column output_length: None: missing"),
        (FIRST | {"output_length": 0}, "an output of 0 tokens (a failed call)"),
    ],
)
def test_a_row_that_cannot_be_used_is_named_with_its_value_and_the_cure(trace, row, said):
    assert said in message(rows, trace(FIRST, row, SECOND))
    assert len(rows(trace(FIRST, row, SECOND), on_bad_row="drop")) == 2


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        (None, "column hash_ids: None: missing; write one number a block of 512 tokens"),
        ([1, [2]], "no list of block ids"),
        ([1, 2, 3, 4], "4 ids for 1000 tokens, not 1 or 2 of 512 tokens each; say how many tokens"),
        ([1, 2, 3, 4], "or --block-tokens); blocks of 250 tokens would do"),
        ([], "0 ids for 1000 tokens"),
    ],
)
def test_ids_that_do_not_fit_the_prompt_are_named_with_blocks_that_would(trace, ids, said):
    path = trace(FIRST | {"hash_ids": ids}, SECOND)
    assert said in message(read_prefixes, path)
    dropped = read_prefixes(path, on_bad_row="drop")
    assert len(dropped.blocks) == sum(dropped.rows_dropped.values()) == 1


def test_a_trace_without_identities_is_refused_with_the_formats_that_have_them():
    text = message(read_prefixes, "azure-conv-2023")
    assert "give one with ids of prefix blocks (formats: blis, mooncake, bailian, " in text


@pytest.mark.parametrize(
    ("wrong", "argument"),
    [({"format": "csv"}, "format"), ({"block_tokens": 0}, "block_tokens"), ({"requests": 0}, "r")],
)
def test_a_wrong_argument_is_named(trace, wrong, argument):
    with pytest.raises(ValueError, match=f"^{argument}"):
        read_prefixes(trace(FIRST), **wrong)
